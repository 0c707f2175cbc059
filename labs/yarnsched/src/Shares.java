import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractLeafQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/** Writes what queues and users have and are due, as the scheduler itself says. */
final class Shares {
  private final PrintWriter queues;
  private final PrintWriter users;
  private final PrintWriter rounds;
  private final List<App> apps;
  private final boolean withUsers;

  Shares(Path folder, List<App> apps, boolean withUsers) throws Exception {
    this.apps = apps;
    this.withUsers = withUsers;
    queues = new PrintWriter(Files.newBufferedWriter(folder.resolve("shares.csv")));
    queues.println("ms,queue," + three("used") + "," + three("pending") + "," + three("due") + "," + three("max") + ","
        + three("min") + "," + three("steady") + ",apps_active,apps_pending");
    users = new PrintWriter(Files.newBufferedWriter(folder.resolve("users.csv")));
    users.println("ms,queue,user," + three("used") + "," + three("limit_active") + "," + three("limit_all"));
    rounds = new PrintWriter(Files.newBufferedWriter(folder.resolve("monitor.csv")));
    rounds.println("ms,queue," + Arrays.stream(new String[] {"guaranteed", "used", "pending", "reserved", "ideal", "to_preempt",
        "actual"}).map(Shares::three).collect(Collectors.joining(",")));
  }

  private static String three(String what) {
    return what + "_mb," + what + "_vcores," + what + "_gpus";
  }

  static Resource resource(long mb, int vcores, long gpus) {
    Resource made = Resource.newInstance(mb, vcores);
    if (ResourceUtils.getResourceTypes().containsKey(SchedLab.GPU)) {
      made.setResourceValue(SchedLab.GPU, gpus);
    }
    return made;
  }

  static long gpus(Resource resource) {
    for (ResourceInformation one : resource.getResources()) {
      if (one.getName().equals(SchedLab.GPU)) {
        return one.getValue();
      }
    }
    return 0;
  }

  private static String cells(Resource one) {
    return one == null ? ",," : one.getMemorySize() + "," + one.getVirtualCores() + "," + gpus(one);
  }

  void sample(long now, LabRM rm) {
    if (rm.scheduler() instanceof CapacityScheduler capacity) {
      tree(now, capacity, capacity.getRootQueue());
    } else {
      tree(now, (FairScheduler) rm.scheduler(), ((FairScheduler) rm.scheduler()).getQueueManager().getRootQueue());
    }
  }

  private void tree(long now, CapacityScheduler scheduler, CSQueue queue) {
    boolean leaf = queue instanceof AbstractLeafQueue;
    AbstractLeafQueue end = leaf ? (AbstractLeafQueue) queue : null;
    queues.println(String.join(",", String.valueOf(now), queue.getQueuePath(), cells(queue.getQueueResourceUsage().getUsed()),
        cells(queue.getQueueResourceUsage().getPending()), cells(queue.getEffectiveCapacity("")),
        cells(queue.getEffectiveMaxCapacity("")), ",,", ",,",
        leaf ? String.valueOf(end.getNumActiveApplications()) : "", leaf ? String.valueOf(end.getNumPendingApplications()) : ""));
    if (leaf && withUsers) {
      apps.stream().filter(app -> app.queue.equals(queue.getQueuePath())).map(app -> app.user).distinct().sorted()
          .filter(user -> end.getUser(user) != null).forEach(user -> users.println(String.join(",", String.valueOf(now),
              queue.getQueuePath(), user, cells(end.getUser(user).getUsed()),
              cells(end.getResourceLimitForActiveUsers(user, scheduler.getClusterResource(), "",
                  SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY)),
              cells(end.getResourceLimitForAllUsers(user, scheduler.getClusterResource(), "",
                  SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY)))));
    }
    if (queue.getChildQueues() != null) {
      queue.getChildQueues().stream().sorted(Comparator.comparing(CSQueue::getQueuePath))
          .forEach(child -> tree(now, scheduler, child));
    }
  }

  private void tree(long now, FairScheduler scheduler, FSQueue queue) {
    boolean leaf = queue.getChildQueues().isEmpty();
    List<SchedulerApplicationAttempt> here = apps.stream().map(App::attempt).filter(Objects::nonNull)
        .filter(attempt -> attempt.getQueueName().equals(queue.getName())).toList();
    Resource pending = Resource.newInstance(0, 0);
    here.forEach(a -> org.apache.hadoop.yarn.util.resource.Resources.addTo(pending, a.getAppAttemptResourceUsage().getPending()));
    queues.println(String.join(",", String.valueOf(now), queue.getName(), cells(queue.getResourceUsage()),
        leaf ? cells(pending) : ",,", cells(queue.getFairShare()), cells(queue.getMaxShare()), cells(queue.getMinShare()),
        cells(queue.getSteadyFairShare()), leaf ? String.valueOf(queue.getNumRunnableApps()) : "",
        leaf ? String.valueOf(here.size() - queue.getNumRunnableApps()) : ""));
    queue.getChildQueues().stream().sorted(Comparator.comparing(FSQueue::getName))
        .forEach(child -> tree(now, scheduler, child));
  }

  void round(long now, List<Object[]> said) {
    for (Object[] row : said) {
      rounds.println(now + "," + row[0] + "," + Arrays.stream(row).skip(1).map(one -> cells((Resource) one))
          .collect(Collectors.joining(",")));
    }
  }

  void close() {
    queues.close();
    users.close();
    rounds.close();
  }
}
