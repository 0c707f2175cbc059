import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.MasterKey;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.util.YarnVersionInfo;

/** A node manager that runs nothing: containers that it was given end at their time, and its next heartbeat says so. */
final class Node {
  private record Held(App app, ContainerId id, long end) {}

  final int index;
  final String name;
  final String rack;
  private final LabRM rm;
  private final Resource size;
  private final NodeId id;
  private final Map<ContainerId, Held> held = new LinkedHashMap<>();
  private int answer;
  private MasterKey containerKey;
  private MasterKey tokenKey;

  Node(LabRM rm, int index, String[] cells) {
    this.rm = rm;
    this.index = index;
    name = cells[0];
    rack = cells[1];
    size = Shares.resource(Long.parseLong(cells[2]), Integer.parseInt(cells[3]), Long.parseLong(cells[4]));
    id = NodeId.newInstance(name, 8041);
  }

  void register() {
    RegisterNodeManagerRequest request = RegisterNodeManagerRequest.newInstance(
        id, 8042, size, YarnVersionInfo.getVersion(), new ArrayList<>(), new ArrayList<>());
    try {
      RegisterNodeManagerResponse said = rm.getResourceTrackerService().registerNodeManager(request);
      containerKey = said.getContainerTokenMasterKey();
      tokenKey = said.getNMTokenMasterKey();
      if (said.getDiagnosticsMessage() != null && !said.getDiagnosticsMessage().isEmpty()) {
        throw new IllegalStateException(said.getDiagnosticsMessage());
      }
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  void holds(App app, RMContainer container, long end) {
    held.put(container.getContainerId(), new Held(app, container.getContainerId(), end));
  }

  void forget(ContainerId container) {
    held.remove(container);
  }

  void beat(long now) {
    List<ContainerStatus> statuses = new ArrayList<>();
    for (Held one : List.copyOf(held.values())) {
      boolean over = one.end() <= now || one.app().masterEnded(one.id());
      if (over) {
        held.remove(one.id());
      }
      statuses.add(ContainerStatus.newInstance(
          one.id(), over ? ContainerState.COMPLETE : ContainerState.RUNNING, "", 0));
    }
    List<ApplicationId> alive = held.values().stream().map(one -> one.app().id).distinct().toList();
    NodeStatus status = NodeStatus.newInstance(
        id, answer, statuses, alive, NodeHealthStatus.newInstance(true, "", now), null, null, null);
    try {
      answer = rm.getResourceTrackerService()
          .nodeHeartbeat(NodeHeartbeatRequest.newInstance(status, containerKey, tokenKey, null)).getResponseId();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
