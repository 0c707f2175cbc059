import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;

/** Appends one JSON object a line to a file; every object carries the time at which it was written. */
final class Events implements AutoCloseable {
  private final BufferedWriter out;

  Events(Path file) throws IOException {
    out = Files.newBufferedWriter(
        file, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }

  /** Write an event; fields are name, value, name, value... */
  synchronized void write(String event, Object... fields) throws IOException {
    StringBuilder line = new StringBuilder("{\"event\": ").append(quoted(event));
    line.append(", \"ms\": ").append(System.currentTimeMillis());
    for (int i = 0; i < fields.length; i += 2) {
      line.append(", ").append(quoted((String) fields[i])).append(": ").append(json(fields[i + 1]));
    }
    out.write(line.append("}\n").toString());
    out.flush();
  }

  private static String json(Object value) {
    if (value == null || value instanceof Number || value instanceof Boolean) {
      return String.valueOf(value);
    }
    if (value instanceof Collection) {
      StringBuilder list = new StringBuilder("[");
      for (Object element : (Collection<?>) value) {
        list.append(list.length() > 1 ? ", " : "").append(json(element));
      }
      return list.append("]").toString();
    }
    return quoted(value.toString());
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  @Override
  public void close() throws IOException {
    out.close();
  }
}
