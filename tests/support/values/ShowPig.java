import java.util.ArrayList;
import java.util.List;
import org.apache.pig.EvalFunc;
import org.apache.pig.data.Tuple;
import org.apache.pig.impl.PigContext;
import org.apache.pig.impl.util.ObjectSerializer;
import org.apache.pig.impl.util.UDFContext;

/** Prints what its script was given as ShowValues does, and the texts in the place of parameters. */
public final class ShowPig extends EvalFunc<String> {
  @Override
  public String exec(Tuple row) {
    List<String> texts = new ArrayList<>();
    row.getAll().forEach(text -> texts.add((String) text));
    String arguments =
        UDFContext.getUDFContext().getClientSystemProps().getProperty(PigContext.PIG_CMD_ARGS_REMAINDERS);
    try {
      String more = "\"texts\":" + ShowValues.list(texts.toArray(new String[0])) + ",";
      ShowValues.show((String[]) ObjectSerializer.deserialize(arguments), more);
    } catch (Exception fault) {
      throw new IllegalStateException(fault);
    }
    return "";
  }
}
