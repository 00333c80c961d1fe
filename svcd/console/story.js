// What the daemon tells of a cluster or a run beyond the record, such as its story: read when its page opens, and again
// after `watch` has told a change.
import { useEffect, useRef, useState } from "./hooks.js";
import { get } from "./api.js";

const PAUSE_MS = 1000; // from one request to the next one
const RETRY_MS = 3000; // after a failure

// The story at `address`; null until it is read. status: of the record; a new one is asked about at once. mark: changes
// with what the story tells; null while no story can be read.
export function useStory(address, status, mark) {
  const [known, set] = useState(null);
  const own = useRef({ asked: 0 }).current;
  own.address = address;
  useEffect(() => {
    if (mark === null) return undefined;
    let timer = 0;
    let left = false;
    const ask = async () => {
      own.asked = performance.now();
      try {
        const [story] = Object.values(await get(address));
        if (own.address === address) set({ of: address, story });
      } catch (error) {
        if (!left && error.status !== 404) timer = setTimeout(ask, RETRY_MS);
      }
    };
    const isNew = known?.of !== address || known.story.status !== status;
    timer = setTimeout(ask, isNew ? 0 : own.asked + PAUSE_MS - performance.now());
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [address, status, mark]);
  return known?.of === address ? known.story : null;
}
