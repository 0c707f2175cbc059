"""Small files in the formats of published traces, made up here: format -> (usual file name, text)."""

from __future__ import annotations

import json

_SWF_JOB = "{k} {at} {wait} 100 4 90.5 -1 {asked} 300 -1 {state} {user} 1 2 1 -1 -1 -1\n"
SWF = "; Version: 2.2\n; UnixStartTime: 1027839845\n; TimeZoneString: US/Pacific\n; MaxNodes: 8\n; MaxProcs: 16\n" + (
    "; Queue: 1 batch\n;\n"
    + "".join(
        _SWF_JOB.format(k=k, at=60 * k, wait=wait, asked=4 + k % 2, state=state, user=k % 3)
        for k, (wait, state) in enumerate(((0, 1), (30, 0), (-1, 5), (20, -1)), 1)
    )
)
METACENTRUM = "".join(
    f"{k} {1356996147 + k} 10 100 2 1 1024 2 400 1048576 1 {k} 1 1 -1 1 1 1 {{{hosts}}} q_{k}d 1:ppn=2:brno#excl\n"
    for k, hosts in enumerate(("12,12", "12,13", "14,14"))
)
FRONTIER = "1 0 5 100 589824 -1 -1 589824 400 -1 1 1 1 1 1 1 -1 -1 64 300 ornl:batch:8x56\n"
ALEA = (
    "id\tsubmit\twait\truntime\tcpus\tcputimeused\tusedmem\tcpusreq\twalltime\tmemreq\tstatus\tuser\tgroup\tapplication\t"
    "queue\tpartition\tprecjob\tthinktime\tDAG_id\t\r\n"
    "1\t0\t0\t2400\t1\t-1\t18\t1\t2400\t18\t1\t1\t1\t1\t1\t1\t-1\t0\tDAG-1\t1\r\n"
    "2\t0\t0\t2400\t1\t-1\t18\t1\t2400\t18\t1\t1\t1\t1\t1\t1\t1&4\t0\tDAG-1\t2\r\n"
)
_TORQUE = (
    "03/28/2017 01:00:00;E;{job};user=u1 group=g1 account=a1 jobname=n1 queue=normal ctime=1490660000 qtime=1490660000 "
    "etime=1490660400 start=1490661060 owner=u1@login exec_host=7/0-15 Resource_List.neednodes={nodes} "
    "Resource_List.nodect={count} Resource_List.walltime={limit} total_execution_slots=32 unique_node_count={count} "
    "end={end} Exit_status={code} resources_used.walltime=00:10:00\n"
)
_HEX = "abcdef0123456789abcdef0{}"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    + (
        "pod-0,12000,16384,1,460,,LS,Running,0,9000,5\n"
        "pod-1,6000,12288,2,1000,T4|P100|T4,BE,Succeeded,10,70,10\n"
        "pod-2,6500,12288,1,1000,,LS,Failed,20,90,50\n"
        "pod-3,6000,12288,4,1000,,LS,Pending,30,40,\n"
        "pod-4,6000,12288,0,0,,LS,Running,40,100,50\n"
    )
)
_GAVEL = "ResNet-18 (batch size 128)\tpython3 main.py\tcifar10\t--num_steps\t1\t{steps}\t{gpus}\t"
_DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
_CONDITION = {"QuotaReserved": 10, "Admitted": 20, "PodsReady": 30}


def _workload(name: str, gpus: int, finished: str | None, at: int) -> dict[str, object]:
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": f"2026-01-01T00:{at:02}:{s:02}Z"}
        for kind, s in _CONDITION.items()
    ]
    if finished:
        conditions.append(
            {"type": "Finished", "status": "True", "reason": finished, "lastTransitionTime": "2026-01-01T01:00:00Z"}
        )
    pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "500m"}}}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": f"job-{name}-x", "namespace": "team", "creationTimestamp": f"2026-01-01T00:{at:02}:00Z",
            "ownerReferences": [{"kind": "Job", "name": name}],
        },
        "spec": {"queueName": "local", "priority": 5, "podSets": [{"count": 2, "template": {"spec": pod}}]},
        "status": {
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "a100"}}],
            },
            "conditions": conditions,
        },
    }  # fmt: skip


VOLCANO_JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "mpi", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "queue": "gold", "minAvailable": 2,
        "tasks": [{"replicas": 2, "template": {"spec": {"containers": [
            {"resources": {"limits": {"nvidia.com/gpu": 4, "memory": "1Gi"}}}]}}}],
    },
    "status": {
        "state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T03:00:00Z"},
        "conditions": [
            {"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"status": "Running", "lastTransitionTime": "2026-01-01T00:10:00Z"},
            {"status": "Restarting", "lastTransitionTime": "2026-01-01T01:00:00Z"},
            {"status": "Running", "lastTransitionTime": "2026-01-01T01:30:00Z"},
            {"status": "Completed", "lastTransitionTime": "2026-01-01T03:00:00Z"},
        ],
    },
}  # fmt: skip
CLUSTER_QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "cq"},
    "spec": {"cohort": "all", "resourceGroups": [{"flavors": [{"name": "a100", "resources": [
        {"name": "nvidia.com/gpu", "nominalQuota": "16", "borrowingLimit": "8"}]}]}]},
}  # fmt: skip
NODE = {
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "A100"}},
    "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1024Gi"}},
}  # fmt: skip
KUBE = json.dumps(
    {
        "apiVersion": "v1",
        "items": [
            _workload("a", 4, "Succeeded", 1), _workload("b", 1, "Failed", 2), _workload("c", 8, None, 3),
            VOLCANO_JOB, CLUSTER_QUEUE, NODE,
        ],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    },
    indent=1,
)  # fmt: skip
BATSIM = json.dumps(
    {
        "nb_res": 8,
        "jobs": [
            {"id": 1, "subtime": 0, "walltime": 100, "res": 2, "profile": "d"},
            {"id": "w!2", "subtime": 5.5, "res": 8, "profile": "d"},
            {"id": 3, "subtime": 7, "walltime": 10, "res": 1, "profile": "d"},
            {"id": 4, "subtime": 8, "walltime": 10, "res": 4, "profile": "p"},
        ],
        "profiles": {"d": {"type": "DelayProfile", "delay": 60.5}, "p": {"type": "ParallelTaskProfile", "cpu": [1.0]}},
    },
    indent=1,
)

TRACES: dict[str, tuple[str, str]] = {
    "swf": ("log.swf", SWF),
    "openb-nodes": (
        "openb_node_list_all_node.csv",
        "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,786432,8,G2\nn2,64000,262144,2,T4\n",
    ),
    "openb-pods": ("openb_pod_list_default.csv", PODS),
    "tiresias-jobs": (
        "60_job.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        + "".join(f"{k},{2**k},{30 * k},600,vgg1{k},{100 * k + 1},30\n" for k in range(4)),
    ),
    "tiresias-cluster": (
        "n4g4.csv",
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,2,4,40,256\n1,1,8,40,256",
    ),
    "pollux-jobs": (
        "workload-1.csv",
        "name,time,application,num_replicas,batch_size,duration,num_task\n"
        "cifar10-0,107,cifar10,6,2048,-1,\nncf-1,110.5,ncf,8,320,7.0,530\n",
    ),
    "philly-hyperdrive": (
        "philly_hyperdrive_workload.csv",
        "experiment-id, job-id, start-time, run-time, num-gpus\n"
        "1781, application_15_0075, 2018-06-16 04:51:49, 7953.0, 1\n"
        "1781, application_15_0042, 2018-06-16 04:48:01, 3309.5, 8\n",
    ),
    "helios-lucid": (
        "cluster_full_log.csv",
        "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue,dataset,"
        "model\n"
        "1,u1,vc1,train,8,32,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:05:00,2020-04-01 12:00:00,6900,300,,\n",
    ),
    "helios-quota": (
        "cluster_gpu_number.csv",
        "date,vcA,vcB,total\n2020-04-01,72,64,136\n2020-04-02,80,64,144\n2020-04-03,80,0,80\n",
    ),
    "helios-vc-config": ("vc_config.csv", ",num\nvcA,9\nvcB,5\n"),
    "gavel-jobs": (
        "120.trace",
        "".join(
            _GAVEL.format(steps=1000 * k, gpus=k) + f"static\t1\t-1.000000\t{100 * k}\t{10 * k}\n" for k in (1, 2, 4)
        ),
    ),
    "gavel-speeds": (
        "simulation_throughputs.json",
        json.dumps(
            {
                "k80": {"('ResNet-18 (batch size 128)', 1)": {"null": 100.0, "('LM (batch size 5)', 1)": [1.5, 2.5]}},
                "v100": {
                    "('ResNet-18 (batch size 128)', 1)": {"null": 8},
                    "('ResNet-18 (batch size 128)', 2)": {"null": 0.0},
                },
                "p100": {"('ResNet-18 (batch size 128)', 2)": {"null": 5.0}},
                "v100_unconsolidated": {"('ResNet-18 (batch size 128)', 1)": {"null": 1.0}},
            },
            indent=4,
        ),
    ),
    "alibaba-spot-nodes": (
        "node_info_df.csv",
        "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,4,192,0\nH800,8,192,1\n",
    ),
    "alibaba-spot-jobs": (
        "job_info_df.csv",
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
        "1,13,A10,20,1,2,0,2764799,HP\n2,13,A10,8,0.5,1,60,600,Spot\n",
    ),
    "alibaba-dlrm": (
        "disaggregated_DLRM_trace.csv",
        _DLRM
        + "i0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,\n"
        + "i1,CN,app_0,12,12,0,0,25,25,120.0,120.0,640.0,800.0,8,10.5,11,200\n"
        + "i2,CN,app_1,12,12,0,0,25,25,120.0,120.0,640.0,800.0,8,10,11,\n",
    ),
    "pai-jobs": (
        "pai_job_table.csv",
        "".join(
            f"{_HEX.format(k)},i{k},user{k % 2},{state},{start},{end}\n"
            for k, (state, start, end) in enumerate(
                (
                    ("Terminated", "4550000.0", "4551000.0"),
                    ("Failed", "4550100.0", "4551000"),
                    ("Running", "4550200.0", ""),
                )
            )
        ),
    ),
    "pai-tasks": (
        "pai_task_table.csv",
        "".join(
            f"{_HEX.format(k)},worker,{n}.0,{state},4550050.0,4551000.0,600.0,29.296875,{gpu},V100\n"
            for k, (n, state, gpu) in enumerate(((2, "Terminated", "50.0"), (1, "Failed", "400.0"), (4, "Running", "")))
        ),
    ),
    "pai-instances": (
        "pai_instance_table.csv",
        "".join(
            f"{_HEX.format(k)},worker,x{n},w{n},i{k},{state},{start},{end},{machine}\n"
            for n, (k, state, start, end, machine) in enumerate(
                (
                    (0, "Terminated", "4550060.0", "4550999.0", "m1"),
                    (0, "Terminated", "4550070.0", "4550900.0", "m2"),
                    (1, "Failed", "", "4550999.0", "m1"),
                    (2, "Interrupted", "0", "4550999.0", "m1"),
                    (3, "Waiting", "", "", ""),
                )
            )
        ),
    ),
    "pai-groups": ("pai_group_tag_table.csv", "i0,user0,V100M32,g1,nmt\ni1,user1,,g2,\n"),
    "pai-machines": ("pai_machine_spec.csv", "m1,V100,96,512,8\nm2,CPU,96,512,0\n"),
    "pai-machine-metric": (
        "pai_machine_metric.csv",
        "w0,m1,4550060,4550999,0.002,3.5,14.9,187.8,18.2,111649584.5,5.05,18.5\nw1,m2,0,4550999,,,,,,,,\n",
    ),
    "pai-simulator": (
        "pai_job_no_estimate_100K.csv",
        "job_id,user,num_inst,num_gpu,num_cpu,submit_time,duration,gpu_type,group\n"
        "0,u1,2,0.5,6,0,100,V100,g1\n1,u2,1,8,6.5,10,20.5,,g2\n",
    ),
    "batsim-workload": ("workload.json", BATSIM),
    "batsim-jobs": (
        "out_jobs.csv",
        "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,"
        "execution_time,finish_time\n1,w0,0.5,4,100,1,2.5,10,12.5\n2,w0,1,2,5,0,2,5,7\n",
    ),
    "kube-objects": ("workloads.json", KUBE),
    "pm100-jobs": (
        "job_table.csv",
        "job_id,job_state,submit_time,start_time,end_time,num_gpus_alloc,num_nodes_alloc,time_limit,user_id,qos\n"
        "1,COMPLETED,2020-05-01T10:00:00+0000,2020-05-01T10:00:30+0000,2020-05-01T11:00:30.250000+0000,4,1,60,7,normal\n"
        "2,TIMEOUT,2020-05-01T10:00:00+0000,2020-05-01T10:00:30+0000,2020-05-01T11:00:30+0000,16,4,60,8,normal\n",
    ),
    "fdata-jobs": (
        "24_04.csv",
        "jid,usr,jnam,adt,sdt,edt,elpl,nnumr,nnuma,cnuma,ec,exit state\n"
        "a1,u1,j1,2024-04-01 09:00:00,2024-04-01 09:01:00,2024-04-01 10:01:00,7200,2,2,96,0,completed\n"
        "a2,u1,j1,2024-04-01 09:00:00,2024-04-01 09:01:00,2024-04-01 08:01:00,7200,2,2,96,9,failed\n",
    ),
    "borg-collections": (
        "collection_events-000000000000.csv",
        "time,type,collection_id,scheduling_class,missing_type,collection_type,priority,alloc_collection_id,user,"
        "collection_name,collection_logical_name,parent_collection_id,max_per_machine,max_per_switch,vertical_scaling,"
        "scheduler\n"
        + "".join(
            f"{at},{kind},{job},2,,0,{200 + job},0,u{job},n{job},l{job},,,,1,0\n"
            for at, kind, job in (
                (600_000_000, 0, 1),
                (610_500_000, 3, 1),
                (700_000_000, 6, 1),
                (0, 0, 2),
                (650_000_000, 3, 2),
                (660_000_000, 4, 2),
                (670_000_000, 3, 2),
                (9223372036854775807, 10, 2),
                (690_000_000, "KILL", 2),
                (610_000_000, 0, 3),
                (800_000_000, 0, 4),
                (900_000_000, 3, 4),
            )
        ),
    ),
    "eagle-jobs": (
        "sample_eagle_data.csv",
        "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,"
        "start_time,end_time,run_time,state,name,work_dir,submit_line\n"
        + "".join(
            f"{job},u1,a1,p1,normal,3600.0,2,72,{gpus},0.0,2019-01-01 08:55:55,{start},{end},600.0,{state},n1,w,s\n"
            for job, gpus, start, end, state in (
                (7, 4, "2019-01-01 08:56:55", "2019-01-01 09:06:55", "COMPLETED"),
                (8, 0, "2019-01-01 08:56:55", "2019-01-01 09:56:55", "TIMEOUT"),
                (7, 4, "2019-01-01 08:57:55", "2019-01-01 08:58:55", "FAILED"),
                (9, 1, "", "2019-01-01 08:58:55", "CANCELLED"),
            )
        ),
    ),
    "lassen-jobs": (
        "final_csm_allocation_history_hashed.csv",
        "allocation_id,primary_job_id,launch_node_name,isolated_cores,user_flags,num_nodes,num_processors,num_gpus,"
        "type,job_type,hashed_user_id,hashed_user_group_id,begin_time,end_time,exit_status,job_submit_time,queue,"
        "time_limit\n"
        "11,501,n1,0,,2,88,0,pbatch,batch,u1,g1,2019-03-01 10:01:00.250000,2019-03-01 11:01:00.75,0,"
        "2019-03-01 10:00:00,pbatch,720\n"
        "12,501,n1,0,,1,44,0,pbatch,batch,u1,g1,2019-03-01 10:01:00,2019-03-01 10:02:00,137,2019-03-01 10:00:00,"
        "pbatch,720\n",
    ),
    "adastra-jobs": (
        "AdastaJobsMI250_15days.csv",
        "job_id,user_id,job_state,submit_time,start_time,end_time,run_time,num_nodes_alloc,time_limit,priority\n"
        "1,7,COMPLETED,2024-09-01 10:00:00,2024-09-01 10:00:30,2024-09-01 11:00:30,3600,4,7200,10\n"
        "2,7,TIMEOUT,2024-09-01 10:00:00,2024-09-01 10:00:30,2024-09-01 12:00:30,7200,1,7200,10\n",
    ),
    "torque-accounting": (
        "20170328",
        "03/28/2017 00:00:01;Q;11.bw;queue=normal\n"
        + _TORQUE.format(job="11.bw", nodes="2:ppn=16:xk", count=2, limit="01:00:00", end=1490661660, code=0)
        + _TORQUE.format(
            job="12[3].bw", nodes="1:ppn=8:gpus=4+2:ppn=8", count=3, limit="3600", end=1490664660, code=271
        )
        + _TORQUE.format(job="13.bw", nodes="nid7", count=1, limit="1:00:00:00", end=1490661120, code=-11),
    ),
    "themis-jobs": (
        "nsdi_debug.json",
        json.dumps(
            [
                {
                    "job_group_id": "1",
                    "job_id": "1",
                    "start_time": "0",
                    "total_iterations": "100",
                    "time_per_iteration": "2.5",
                    "max_parallelism": "4",
                    "random_seed": "7",
                },
                {
                    "job_group_id": "1",
                    "job_id": 2,
                    "start_time": 60.5,
                    "total_iterations": 10,
                    "time_per_iteration": 1,
                    "max_parallelism": 1,
                },
            ],
            indent=1,
        ),
    ),
    "alcf-jobs": (
        "ANL-ALCF-DJC-POLARIS_20230101_20231231.csv",
        "JOB_NAME,COBALT_JOBID,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,NODES_USED,NODES_REQUESTED,WALLTIME_SECONDS,"
        "RUNTIME_SECONDS,USERNAME_GENID,QUEUE_NAME,EXIT_STATUS\n"
        "1001.pbs,,2023-01-01 00:00:00,2023-01-01 00:10:00,2023-01-01 01:10:00,10,10,7200,3600,u1,prod,0\n"
        "1002.pbs,,2023-01-01 00:00:00,2023-01-01 00:10:00,2023-01-01 01:10:00,4,4,7200,3600,u1,prod,1\n",
    ),
    "alibaba-asi": (
        "job_execution_summary.csv",
        "pod_id,workload_id,state_public,gpu_spec_public,priority_class,gpu_request,schedule_delay_sec,duration_hours\n"
        "p1,w1,Succeeded,H20,HP,8,12.5,2\np2,w1,Running,H20,LP,0.5,,0.25\n",
    ),
    "acme-util": (
        "GPU_UTIL.csv",
        "Time,10.140.1.10-0,10.140.1.10-1,10.140.1.54-0\n"
        + "".join(f"2023-07-01 08:00:{15 * k:02}+08:00,{10 * k},99.5,\n" for k in range(4)),
    ),
    "llm-azure": (
        "AzureLLMInferenceTrace_code.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n"
        "2023-11-16 18:17:04.0319601,3180,8\r\n2023-11-16 18:17:05,110,27",
    ),
    "llm-burstgpt": (
        "BurstGPT_1.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,1087,0,1087,API log\n",
    ),
    "llm-mooncake": (
        "conversation_trace.jsonl",
        "".join(
            f'{{"timestamp": {3000 * k}, "input_length": {100 + k}, "output_length": {k}, "hash_ids": [0, {k}]}}\n'
            for k in range(4)
        ),
    ),
    "alibaba-genai-requests": (
        "lora_request_trace.csv",
        "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_lora\n"
        "2024-11-15 16:57:50,TXT_2_IMG,SUCCEED,32.0,G0,1.0,0\n2024-11-15 18:16:14,TXT_2_IMG,FAILED,,G1,4.0,0\n",
    ),
    "alibaba-genai-qps": (
        "qps.csv",
        "timestamp_anon,value,container_ip,request_type\n1662859176.0,0.1,,API Requests\n"
        "1662859233.0,2,c1,API Requests\n",
    ),
    "alibaba-genai-gpu-util": (
        "pod_gpu_duty_cycle_anon.csv",
        "value,timestamp_anon,container_ip\n0.0,1662858720.0,c1\n55.5,1662858777.0,c1\n",
    ),
}
