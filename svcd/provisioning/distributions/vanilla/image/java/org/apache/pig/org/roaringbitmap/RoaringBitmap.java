package org.apache.pig.org.roaringbitmap;

/**
 * The published jar of Pig 0.18.0 refers to a relocated copy of RoaringBitmap that it does not carry: each job on YARN
 * fails for want of this class, and the bloom filter functions need it to work. This is the real bitmap under that name,
 * with the methods whose signature names the class itself; the stored form is the standard one.
 */
public class RoaringBitmap extends org.roaringbitmap.RoaringBitmap {
  private static final long serialVersionUID = 1L;

  public static RoaringBitmap bitmapOf(int... positions) {
    RoaringBitmap made = new RoaringBitmap();
    made.add(positions);
    return made;
  }

  public void and(RoaringBitmap other) {
    super.and(other);
  }

  public void or(RoaringBitmap other) {
    super.or(other);
  }

  public void xor(RoaringBitmap other) {
    super.xor(other);
  }
}
