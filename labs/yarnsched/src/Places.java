import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Which rack a node stands in, by nodes.csv. */
final class Places {
  private static List<String[]> rows;

  private Places() {}

  static void read(Path file) throws Exception {
    rows = SchedLab.table(file);
  }

  static Set<String> rack(List<String> hosts) {
    Set<String> racks = new LinkedHashSet<>();
    for (String host : hosts) {
      rows.stream().filter(cells -> cells[0].equals(host)).forEach(cells -> racks.add(cells[1]));
    }
    return racks;
  }
}
