import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.SchedulingEditPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;

/** Stands where the ResourceManager would start the monitor's thread: the driver runs the monitor itself. */
public class QuietMonitor implements SchedulingEditPolicy {
  @Override
  public void init(Configuration conf, RMContext context, ResourceScheduler scheduler) {}

  @Override
  public void editSchedule() {}

  @Override
  public long getMonitoringInterval() {
    return 3_600_000;
  }

  @Override
  public String getPolicyName() {
    return "QuietMonitor";
  }
}
