import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.net.NetUtils;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.LabMonitor;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.LabCapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerPreemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.LabFairScheduler;

/**
 * Plays a workload to a real ResourceManager and scheduler on a clock of its own, and writes down what they decide.
 *
 * SchedLab FOLDER: reads nodes.csv, workload.csv and settings of yarn-site.xml that begin with lab., writes events.csv,
 * shares.csv, users.csv (capacity) and monitor.csv (capacity with preemption) there.
 */
public final class SchedLab {
  static final long START_MS = 1_700_000_000_000L;
  static final String GPU = "yarn.io/gpu";
  // at one instant: submissions, then what the scheduler does by itself, then masters, then nodes, then the sample
  private static final int SUBMIT = 0, ROUND = 1, MASTER = 2, NODE = 3, SAMPLE = 4;

  private record Due(long ms, int rank, long number, Runnable what) {}

  /** A container as the driver last saw it. */
  private record Seen(App app, RMContainer container, boolean reserved) {}

  private final PriorityQueue<Due> due =
      new PriorityQueue<>(Comparator.comparingLong(Due::ms).thenComparingInt(Due::rank).thenComparingLong(Due::number));
  private final List<App> apps = new ArrayList<>();
  private final Map<String, Node> nodes = new LinkedHashMap<>();
  private final Map<String, Seen> seen = new LinkedHashMap<>();
  private final Map<String, String> localities = new HashMap<>();
  private final Map<String, Integer> order = new HashMap<>();
  private final PrintWriter events;
  private final Shares shares;
  private final YarnConfiguration conf = new YarnConfiguration();
  private final LabRM rm;
  private LabMonitor monitor;
  private long now;
  private long dueNumber;
  private int row;

  private SchedLab(Path folder) throws Exception {
    rm = new LabRM(() -> START_MS + now);
    events = new PrintWriter(Files.newBufferedWriter(folder.resolve("events.csv")));
    events.println("seq,ms,event,app,container,queue,user,node,mb,vcores,gpus,detail");
    Places.read(folder.resolve("nodes.csv"));
    for (String[] cells : table(folder.resolve("nodes.csv"))) {
      NetUtils.addStaticResolution(cells[0], "127.0.0.1");
      nodes.put(cells[0], new Node(rm, nodes.size(), cells));
    }
    for (String[] cells : table(folder.resolve("workload.csv"))) {
      apps.add(new App(rm, apps.size(), cells));
    }
    shares = new Shares(folder, apps, conf.getBoolean("lab.users", false));
  }

  /** Run what the folder holds. */
  public static void main(String[] args) throws Exception {
    int code = 1;
    try {
      SchedLab lab = new SchedLab(Path.of(args[0]));
      lab.start();
      lab.run();
      lab.events.close();
      lab.shares.close();
      code = 0;
    } catch (Throwable error) {
      error.printStackTrace();
    } finally {
      System.err.flush();
      Runtime.getRuntime().halt(code); // Hadoop leaves threads behind
    }
  }

  private void start() throws Exception {
    rm.init(conf);
    boolean preemption = conf.getBoolean(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS, false);
    if (rm.scheduler() instanceof LabFairScheduler fair) {
      fair.driver = Thread.currentThread();
      fair.timer = (task, delay) -> at(delay, ROUND, () -> step(task));
      fair.victims = (container, starved) -> write("mark", container, apps.get(number(container)),
          "for " + apps.get(starved.getApplicationId().getId() - 1).name);
    }
    rm.start();
    LabRM.epoch(START_MS);
    rm.watch = event -> {
      if (event instanceof ContainerPreemptEvent preempt) {
        write("mark", preempt.getContainer(), apps.get(number(preempt.getContainer())), event.getType().name());
      }
    };
    rm.drain();
    // every node says hello at 0, in order, and then beats with an offset of its own
    int beat = conf.getInt("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", 1000);
    for (Node node : nodes.values()) {
      node.register();
      rm.drain();
      every(1 + (long) beat * node.index / nodes.size(), beat, NODE, () -> step(() -> node.beat(START_MS + now)));
    }
    for (App app : apps) {
      at(app.submitMs, SUBMIT, () -> submit(app));
    }
    if (rm.scheduler() instanceof LabFairScheduler fair) {
      every(0, conf.getLong("lab.update-ms", 500), ROUND, () -> step(() -> {
        fair.update();
        fair.preemptForStarved();
      }));
    } else if (preemption) {
      monitor = new LabMonitor(rm.getRMContext(), (CapacityScheduler) rm.scheduler(), () -> START_MS + now);
      every(0, monitor.getMonitoringInterval(), ROUND, () -> step(() -> {
        monitor.editSchedule();
        shares.round(now, monitor.rows());
      }));
    }
    every(0, 1000, SAMPLE, () -> shares.sample(now, rm));
  }

  private void run() {
    long limit = conf.getLong("lab.limit-ms", 600_000);
    while (now < limit && !apps.stream().allMatch(app -> app.over)) {
      Due next = due.poll();
      now = next.ms();
      next.what().run();
    }
    for (App app : apps) {
      if (!app.over) {
        write("unfinished", null, app, "");
      }
    }
  }

  private void at(long delay, int rank, Runnable what) {
    due.add(new Due(now + delay, rank, dueNumber++, what));
  }

  private void every(long first, long interval, int rank, Runnable what) {
    at(first, rank, () -> {
      what.run();
      every(interval, interval, rank, what);
    });
  }

  private void submit(App app) {
    step(() -> {
      String refused = app.submit();
      write("submit", null, app, "");
      if (refused != null) {
        app.over = true;
        write("refused", null, app, refused);
      }
    });
    if (!app.over) {
      at(app.unmanaged() ? 0 : 1000, MASTER, () -> master(app));
    }
  }

  private void master(App app) {
    step(() -> {
      String before = app.state;
      app.beat();
      if (!app.state.equals(before)) {
        write(app.state.toLowerCase(), null, app, app.why);
      }
    });
    if (!app.over) {
      at(1000, MASTER, () -> master(app));
    }
  }

  /** Do one thing, all that follows from it, and write down how the containers differ. */
  private void step(Runnable what) {
    what.run();
    rm.drain();
    if (rm.scheduler() instanceof LabCapacityScheduler capacity) {
      int index = 0;
      for (LabCapacityScheduler.Commit commit : capacity.commits) {
        localities.put(commit.container().getContainerId().toString(), commit.locality());
        order.put(commit.container().getContainerId().toString(), index++);
      }
      capacity.commits.clear();
    }
    Map<String, Seen> current = new LinkedHashMap<>();
    for (App app : apps) {
      SchedulerApplicationAttempt attempt = app.attempt();
      if (attempt != null) {
        attempt.getReservedContainers().stream().sorted(Comparator.comparing(RMContainer::getReservedNode))
            .forEach(c -> current.put("R" + c.getReservedNode() + "/" + app.number, new Seen(app, c, true)));
        attempt.getLiveContainers().stream().sorted(Comparator.comparing(RMContainer::getContainerId))
            .forEach(c -> current.put(c.getContainerId().toString(), new Seen(app, c, false)));
      }
    }
    for (Map.Entry<String, Seen> old : seen.entrySet()) {
      if (!current.containsKey(old.getKey())) {
        Seen gone = old.getValue();
        String why = gone.reserved() ? "" : exit(gone);
        write(gone.reserved() ? "unreserve" : "release", gone.container(), gone.app(), why);
        if (!gone.reserved()) {
          gone.app().released(gone.container(), why);
          nodes.get(gone.container().getAllocatedNode().getHost()).forget(gone.container().getContainerId());
        }
      }
    }
    current.entrySet().stream().filter(e -> !seen.containsKey(e.getKey()))
        .sorted(Comparator.comparingInt(e -> order.getOrDefault(id(e.getValue()), Integer.MAX_VALUE)))
        .forEach(e -> appeared(e.getValue()));
    order.clear();
    seen.clear();
    seen.putAll(current);
  }

  private void appeared(Seen one) {
    if (one.reserved()) {
      write("reserve", one.container(), one.app(), "");
      return;
    }
    Node node = nodes.get(one.container().getAllocatedNode().getHost());
    boolean am = one.app().allocated(one.container());
    long end = am ? Long.MAX_VALUE : START_MS + now + one.app().durationMs;
    node.holds(one.app(), one.container(), end);
    write("allocate", one.container(), one.app(), am ? "AM" : localities.getOrDefault(id(one), one.app().locality(node)));
  }

  private static String id(Seen one) {
    ContainerId id = one.container().getContainerId();
    return String.valueOf(id);
  }

  private static int number(RMContainer container) {
    return container.getApplicationAttemptId().getApplicationId().getId() - 1;
  }

  private static String exit(Seen gone) {
    return switch (gone.container().getContainerExitStatus()) {
      case 0 -> "completed";
      case -102 -> "preempted";
      case -100 -> "aborted";
      case -106, -107, -108 -> "killed";
      default -> String.valueOf(gone.container().getContainerExitStatus());
    };
  }

  private void write(String event, RMContainer container, App app, String detail) {
    String id = container == null || event.endsWith("reserve") ? "" : container.getContainerId().toString();
    String node = "";
    Resource size = Resource.newInstance(0, 0);
    if (container != null) {
      boolean reserved = event.endsWith("reserve");
      node = (reserved ? container.getReservedNode() : container.getAllocatedNode()).getHost();
      size = reserved ? container.getReservedResource() : container.getAllocatedResource();
    }
    events.println(String.join(",", String.valueOf(row++), String.valueOf(now), event, app.name, id, app.queue, app.user,
        node, String.valueOf(size.getMemorySize()), String.valueOf(size.getVirtualCores()),
        String.valueOf(Shares.gpus(size)), detail.replace(',', ';').replace('\n', ' ')));
  }

  static List<String[]> table(Path file) throws Exception {
    List<String[]> rows = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      rows.add(line.split(",", -1));
    }
    return rows.subList(1, rows.size());
  }
}
