import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.service.AbstractService;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.AdminService;
import org.apache.hadoop.yarn.server.resourcemanager.ApplicationMasterService;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceTrackerService;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.AMLauncherEvent;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.ApplicationMasterLauncher;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.apache.hadoop.yarn.util.Clock;

/**
 * A real ResourceManager without its threads and servers: events wait in one queue until the driver drains it.
 *
 * So the state machines, the services and the scheduler are Hadoop's, and their order does not depend on the machine.
 */
class LabRM extends ResourceManager {
  private final Clock clock;
  private final Queue queue = new Queue();
  /** Is shown every scheduler event before the scheduler is. */
  Consumer<SchedulerEvent> watch = event -> {};

  LabRM(Clock clock) {
    this.clock = clock;
  }

  /** What the ids of applications begin with. */
  static void epoch(long ms) {
    setClusterTimeStamp(ms);
  }

  /** Handle all events that wait, and those that they cause. */
  void drain() {
    queue.drain();
  }

  AbstractYarnScheduler<?, ?> scheduler() {
    return (AbstractYarnScheduler<?, ?>) scheduler;
  }

  @Override
  protected void serviceInit(Configuration conf) throws Exception {
    super.serviceInit(conf);
    NullRMStateStore store = new NullRMStateStore() {
      @Override
      @SuppressWarnings("rawtypes")
      protected EventHandler getRMStateStoreEventHandler() {
        return rmStateStoreEventHandler;
      }
    };
    store.init(conf);
    setRMStateStore(store);
    store.start();
  }

  @Override
  protected Dispatcher createDispatcher() {
    return queue;
  }

  @Override
  protected EventHandler<SchedulerEvent> createSchedulerEventDispatcher() {
    return event -> {
      watch.accept(event);
      scheduler.handle(event);
    };
  }

  @Override
  protected ResourceScheduler createScheduler() {
    ResourceScheduler made = super.createScheduler();
    ((AbstractYarnScheduler<?, ?>) made).setClock(clock);
    return made;
  }

  @Override
  protected ApplicationMasterLauncher createAMLauncher() {
    return new ApplicationMasterLauncher(getRMContext()) {
      @Override
      protected void serviceStart() {}

      @Override
      protected void serviceStop() {}

      @Override
      public void handle(AMLauncherEvent event) {} // the driver says when a master is up
    };
  }

  @Override
  protected ClientRMService createClientRMService() {
    return new ClientRMService(getRMContext(), scheduler, rmAppManager, applicationACLsManager, queueACLsManager,
        getRMContext().getRMDelegationTokenSecretManager()) {
      @Override
      protected void serviceStart() {}

      @Override
      protected void serviceStop() {}
    };
  }

  @Override
  protected ResourceTrackerService createResourceTrackerService() {
    return new ResourceTrackerService(getRMContext(), nodesListManager, nmLivelinessMonitor,
        getRMContext().getContainerTokenSecretManager(), getRMContext().getNMTokenSecretManager()) {
      @Override
      protected void serviceStart() {}

      @Override
      protected void serviceStop() {}
    };
  }

  @Override
  protected ApplicationMasterService createApplicationMasterService() {
    return new ApplicationMasterService(getRMContext(), scheduler) {
      @Override
      protected void serviceStart() {}

      @Override
      protected void serviceStop() {}
    };
  }

  @Override
  protected AdminService createAdminService() {
    return new AdminService(this) {
      @Override
      protected void startServer() {}

      @Override
      protected void stopServer() {}
    };
  }

  @Override
  protected void startWepApp() {}

  @SuppressWarnings({"rawtypes", "unchecked"})
  private static final class Queue extends AbstractService implements Dispatcher {
    private final ConcurrentLinkedQueue<Event> waiting = new ConcurrentLinkedQueue<>();
    private final Map<Class<?>, EventHandler> handlers = new HashMap<>();

    Queue() {
      super("Queue");
    }

    void drain() {
      for (Event event = waiting.poll(); event != null; event = waiting.poll()) {
        EventHandler handler = handlers.get(event.getType().getDeclaringClass());
        if (handler == null) {
          throw new IllegalStateException("no handler of " + event);
        }
        handler.handle(event);
      }
    }

    @Override
    public EventHandler<Event> getEventHandler() {
      return waiting::add; // a few of Hadoop's own threads come by, too
    }

    @Override
    public void register(Class<? extends Enum> type, EventHandler handler) {
      EventHandler before = handlers.get(type);
      handlers.put(type, before == null ? handler : event -> {
        before.handle(event);
        handler.handle(event);
      });
    }
  }
}
