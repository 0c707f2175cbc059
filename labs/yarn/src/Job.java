import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What one application is to do: blank-separated key=value pairs, the values as in a URL. */
final class Job {
  final String line;
  private final Map<String, String> values = new HashMap<>();

  Job(String line) throws UnsupportedEncodingException {
    this.line = line;
    for (String pair : line.trim().split(" ")) {
      int equals = pair.indexOf('=');
      values.put(pair.substring(0, equals), URLDecoder.decode(pair.substring(equals + 1), "UTF-8"));
    }
  }

  String text(String key, String otherwise) {
    return values.getOrDefault(key, otherwise);
  }

  long number(String key, long otherwise) {
    return values.containsKey(key) ? Long.parseLong(values.get(key)) : otherwise;
  }

  List<String> list(String key) {
    return values.containsKey(key) ? Arrays.asList(values.get(key).split(",")) : Collections.emptyList();
  }
}
