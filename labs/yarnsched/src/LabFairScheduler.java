package org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.function.BiConsumer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/**
 * Hadoop's own FairScheduler whose two threads (update, preemption) do their work when the driver says so, on its clock.
 *
 * The bodies that they run are Hadoop's; the order within one round (update, then each starved app) is that of the threads.
 */
public class LabFairScheduler extends FairScheduler {
  public Thread driver;
  /** Is told (task, delay in ms) what the preemption thread puts on its timer. */
  public BiConsumer<Runnable, Long> timer;
  /** Is told each container that is chosen as a victim, and the starved application that it is chosen for. */
  public BiConsumer<RMContainer, FSAppAttempt> victims;
  private FSPreemptionThread preemption;

  @Override
  public void update() {
    if (Thread.currentThread() == driver) {
      super.update();
    }
  }

  @Override
  protected void createPreemptionThread() {
    preemption = new FSPreemptionThread(this);
    set(FSPreemptionThread.class, preemption, "preemptionTimer", new Timer(true) {
      @Override
      public void schedule(TimerTask task, long delay) {
        timer.accept(task, delay);
      }
    });
  }

  /** What FSPreemptionThread.work does with every app that the last update found starved. */
  @SuppressWarnings("unchecked")
  public void preemptForStarved() {
    if (preemption == null) {
      return;
    }
    FSStarvedApps starved = getContext().getStarvedApps();
    var apps = (PriorityBlockingQueue<FSAppAttempt>) get(FSStarvedApps.class, starved, "appsToProcess");
    long delay = (Long) get(FSPreemptionThread.class, preemption, "delayBeforeNextStarvationCheck");
    for (FSAppAttempt app = apps.poll(); app != null; app = apps.poll()) {
      set(FSStarvedApps.class, starved, "appBeingProcessed", app);
      try {
        Method identify = FSPreemptionThread.class.getDeclaredMethod("identifyContainersToPreempt", FSAppAttempt.class);
        Method preempt = FSPreemptionThread.class.getDeclaredMethod("preemptContainers", List.class);
        identify.setAccessible(true);
        preempt.setAccessible(true);
        List<RMContainer> chosen = (List<RMContainer>) identify.invoke(preemption, app);
        for (RMContainer container : chosen) {
          victims.accept(container, app);
        }
        preempt.invoke(preemption, chosen);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
      app.preemptionTriggered(delay);
      set(FSStarvedApps.class, starved, "appBeingProcessed", null);
    }
  }

  private static Object get(Class<?> type, Object of, String name) {
    try {
      Field field = type.getDeclaredField(name);
      field.setAccessible(true);
      return field.get(of);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static void set(Class<?> type, Object of, String name, Object value) {
    try {
      Field field = type.getDeclaredField(name);
      field.setAccessible(true);
      field.set(of, value);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
