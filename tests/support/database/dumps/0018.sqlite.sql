BEGIN TRANSACTION;
CREATE TABLE changes (
  kind text  not null,
  id text  not null,
  tenant_id text  not null,
  number integer not null,
  first integer not null,
  version integer not null,
  deleted integer not null,
  expires integer not null,
  primary key (kind, id)
);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/1','demo',4,4,1,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/10','demo',20,20,10,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/11','demo',22,22,11,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/12','demo',23,23,12,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/13','demo',24,24,13,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/14','demo',26,26,14,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/15','demo',27,27,15,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/16','demo',28,28,16,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/17','demo',30,30,17,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/18','demo',31,31,18,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/19','demo',33,33,19,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/2','demo',6,6,2,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/20','demo',35,35,20,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/21','demo',36,36,21,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/22','demo',38,38,22,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/23','demo',39,39,23,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/24','demo',40,40,24,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/25','demo',41,41,25,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/26','demo',43,43,26,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/3','demo',8,8,3,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/4','demo',11,11,4,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/5','demo',12,12,5,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/6','demo',13,13,6,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/7','demo',16,16,7,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/8','demo',17,17,8,0,1);
INSERT INTO "changes" VALUES('cluster_events','0000000d-e6f4-490b-9a16-4106cf6a659e/9','demo',18,18,9,0,1);
INSERT INTO "changes" VALUES('cluster_templates','00000009-c17c-4279-a3c6-612f48268673','demo',2,2,1,0,0);
INSERT INTO "changes" VALUES('clusters','0000000d-e6f4-490b-9a16-4106cf6a659e','demo',42,3,15,0,0);
INSERT INTO "changes" VALUES('data_sources','00000026-3405-495c-8a50-06c1ec188efb','demo',47,47,1,0,0);
INSERT INTO "changes" VALUES('data_sources','00000027-9a6a-4f92-8ca7-4147f6be1f72','demo',48,48,1,0,0);
INSERT INTO "changes" VALUES('job_binaries','00000024-1ff3-4849-b4e1-357d4a84eb03','demo',45,45,1,0,0);
INSERT INTO "changes" VALUES('job_binaries','0000002a-5129-4b7c-a288-e1a5cc457821','demo',63,63,1,0,0);
INSERT INTO "changes" VALUES('job_binary_internals','00000023-8d1f-49b7-8d2b-9deb1beb3711','demo',44,44,1,0,0);
INSERT INTO "changes" VALUES('job_binary_internals','pieces','demo',65,65,1,0,0);
INSERT INTO "changes" VALUES('job_executions','00000028-49a3-480e-966e-12778c1745a7','demo',61,49,8,0,0);
INSERT INTO "changes" VALUES('job_executions','00000029-98a6-416d-9775-336d71eacd05','demo',64,56,7,0,0);
INSERT INTO "changes" VALUES('jobs','00000025-d080-466e-952f-233a8c25166a','demo',46,46,1,0,0);
INSERT INTO "changes" VALUES('node_group_templates','00000008-23a7-411a-8133-287637ebdcd9','demo',1,1,1,0,0);
CREATE TABLE cluster_events (
  cluster_id text  not null references clusters (id) on delete cascade,
  number integer not null,
  record text not null,
  primary key (cluster_id, number)
);
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',1,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"request","outcome":"accepted","text":"create with fake 0.1: master 1, worker 2","until":"2026-01-01 00:30:00.000000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',2,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"Spawning","outcome":"started","until":"2026-01-01 00:30:00.000000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',3,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create security group","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',4,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',5,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',6,'{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',7,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-master-001","step":"create server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',8,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-001","step":"create server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',9,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"create server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',10,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Preparing","outcome":"started","until":"2026-01-01 00:15:00.100000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',11,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',12,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',13,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',14,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',15,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',16,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',17,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Configuring","outcome":"started","until":"2026-01-01 00:10:00.100000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',18,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"configure","outcome":"started","until":"2026-01-01 00:02:00.100000","began":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"prepare machine"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',19,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"configure","outcome":"done","text":"in 0.0 s","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"prepare machine"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',20,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Starting","outcome":"started","until":"2026-01-01 00:15:00.100000"}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',21,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start","outcome":"started","until":"2026-01-01 00:02:00.100000","began":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',22,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start namenode, resourcemanager, oozie, historyserver","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',23,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start datanode, nodemanager","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',24,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start datanode, nodemanager","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',25,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start","outcome":"done","text":"in 0.0 s","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO "cluster_events" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e',26,'{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Active","outcome":"done"}');
CREATE TABLE cluster_templates (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  plugin_name text  not null,
  engine_version text  not null,
  created_at text  not null,
  refs text  not null,
  record text not null,
  wire text not null
);
INSERT INTO "cluster_templates" VALUES('00000009-c17c-4279-a3c6-612f48268673','demo','small','fake','0.1','2026-01-01 00:00:00.000000',' 00000008-23a7-411a-8133-287637ebdcd9 ','{"anti_affinity":[],"cluster_configs":{},"created_at":"2026-01-01 00:00:00.000000","default_image_id":"00000000-0000-4000-8000-000000000002","description":null,"engine_version":"0.1","id":"00000009-c17c-4279-a3c6-612f48268673","name":"small","neutron_management_network":null,"node_groups":[{"count":1,"name":"master","node_group_template_id":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{},"node_processes":["namenode","resourcemanager","oozie","historyserver"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10},{"count":2,"name":"worker","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}],"plugin_name":"fake","tenant_id":"demo","updated_at":null}','{"id":"00000009-c17c-4279-a3c6-612f48268673","name":"small","description":"","plugin_name":"fake","engine_version":"0.1","cluster_configs":{},"anti_affinity":[],"node_groups":[{"name":"master","count":1,"node_processes":["namenode","resourcemanager","oozie","historyserver"],"flavor_id":"2","node_configs":{},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk"},{"name":"worker","count":2,"node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9"}],"default_image_id":"00000000-0000-4000-8000-000000000002"}');
CREATE TABLE clusters (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  plugin_name text  not null,
  engine_version text  not null,
  cluster_template_id text ,
  default_image_id text  not null,
  status text  not null,
  is_transient integer not null,
  generation integer not null,
  settled_generation integer not null,
  version integer not null,
  created_at text  not null,
  refs text  not null,
  record text not null,
  wire text not null
, used integer not null default 0, name_key text, instances integer not null default 0, accepted_at text  not null default '');
INSERT INTO "clusters" VALUES('0000000d-e6f4-490b-9a16-4106cf6a659e','demo','mine','fake','0.1','00000009-c17c-4279-a3c6-612f48268673','00000000-0000-4000-8000-000000000002','Active',0,1,1,15,'2026-01-01 00:00:00.000000',' 00000008-23a7-411a-8133-287637ebdcd9 ','{"accepted_at":null,"anti_affinity":[],"cluster_configs":{},"cluster_template_id":"00000009-c17c-4279-a3c6-612f48268673","created_at":"2026-01-01 00:00:00.000000","daemon_user":"svcd","default_image_id":"00000000-0000-4000-8000-000000000002","description":"it''s \"100%\" :name \\ ü 漢 🐍","desired":"active","emptied":false,"engine_version":"0.1","force_delete":false,"generation":1,"id":"0000000d-e6f4-490b-9a16-4106cf6a659e","info":{"HDFS":{"NameNode":"hdfs://127.1.0.10:8020"},"JobFlow":{"Oozie":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e"}},"is_transient":false,"management_private_key":"f1:gAAAAABrCCHPn84XfeMqeYTihHXgaDSjUtpJ-MGU3TzmkBmUK04eTg2UvonpCBktUFOkbenx5CTTxdk8eUd1hXhYHS1iws4H_sj2ZjBfkWNJNtuPr60ccFj5qiMgjOjLDQrdyJILt2MsfLPRaifuPUPRlqZPnfdFuXoUfm6UOV30EE6dWNgDcY3_EAARjnHqYy2oWM1g_XJ_HUqVz8GCIHLQ3xz9jo8YwXgXIWug_0q2FQ1qr9Bv33v-A_N1czFxB5-sKIPlHA9_1ShCyrtARUVnu6TcUqyaxg9kNJflCVJtvHPvb0JCBF8I-8NSNjRXxO5l6h8a79j9UESxyJeJQ-BVTWgH6U1zj-MieT54FGdxDRhfA4qGh-PlSkfxal1OMilvRNh41N2V6TH5IRJwD-QIjgO03yqqZHUkyjhqXAb5vZlpo89M0QIeIxXtj6l4FE0REMpiGkFzqa4u330GMK4ZMdSwiihrbB48V-X0giDX2D4ltW3BoNaMfZn51dqWtBCb2ASlcb5IpkPhPhXlPmuPgasnzCxh-FauFVRIN8jagJGVm8zkT7SIJ9GsG4fUmshUBRcWrft_gyU6uUljuwf3z78U-n3PZw==","management_public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINGfa9ACRcRZUDiDqGoKnH7xN5bq4KAruaSNrRAyt2/R svcd mine","name":"mine","neutron_management_network":null,"node_groups":[{"created_at":"2026-01-01 00:00:00.000000","flavor_ram_mib":2048,"flavor_vcpus":1,"instances":[{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJpOli2j35ycNUrlITrEmqeaQbaaNhtCkhaEQgrYVel7","index":1,"instance_id":"0000000e-1948-4dec-8f65-d4d9259f4329","instance_name":"mine-master-001","internal_ip":"127.1.0.10","leaving":false,"management_ip":"127.1.0.10","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"00000019-6619-4cb1-9710-37d1b83e90ec","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]}],"updated_at":null,"count":1,"name":"master","node_group_template_id":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{},"node_processes":["namenode","resourcemanager","oozie","historyserver"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10},{"created_at":"2026-01-01 00:00:00.000000","flavor_ram_mib":2048,"flavor_vcpus":1,"instances":[{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF+Mb7CkcYzlzq31YsuR7hGz8yqvZ8s4+0H9U73o+GiO","index":1,"instance_id":"0000000f-e61a-441c-92e0-c8b2bad640fb","instance_name":"mine-worker-001","internal_ip":"127.1.0.11","leaving":false,"management_ip":"127.1.0.11","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"0000001c-b421-4aeb-9340-97cabaf3897a","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]},{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7N1DRUSW9tYJCA069kTK9ESpJsFDybEFrdySK+C8Du","index":2,"instance_id":"00000010-5487-4e1e-af19-922ad9b8a714","instance_name":"mine-worker-002","internal_ip":"127.1.0.12","leaving":false,"management_ip":"127.1.0.12","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"0000001f-cd9d-4b7d-a47a-8333f7b0b7d2","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]}],"updated_at":null,"count":2,"name":"worker","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}],"openings":["2222 0.0.0.0/0"],"own_logins":true,"plugin_name":"fake","security_group_id":"00000014-8d72-4104-b773-83c13458a748","server_group_id":null,"settled_generation":1,"ssh_port":2222,"status":"Active","status_description":"","status_since":"2026-01-01 00:00:00.100000","tenant_id":"demo","trust_id":null,"trustor_id":null,"unwell":null,"updated_at":"2026-01-01 00:00:00.100000","user_keypair_id":"demo","username":"svcd","version":15}','{"id":"0000000d-e6f4-490b-9a16-4106cf6a659e","name":"mine","description":"it''s \"100%\" :name \\ ü 漢 🐍","status":"Active","status_description":"","info":{"HDFS":{"NameNode":"hdfs://127.1.0.10:8020"},"JobFlow":{"Oozie":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e"}},"plugin_name":"fake","engine_version":"0.1","default_image_id":"00000000-0000-4000-8000-000000000002","cluster_configs":{},"anti_affinity":[],"is_transient":false,"node_groups":[{"name":"master","count":1,"node_processes":["namenode","resourcemanager","oozie","historyserver"],"flavor_id":"2","node_configs":{},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","created":"2026-01-01T00:00:00","updated":"2026-01-01T00:00:00","instances":[{"instance_name":"mine-master-001","instance_id":"0000000e-1948-4dec-8f65-d4d9259f4329","volumes":[],"internal_ip":"127.1.0.10","management_ip":"127.1.0.10","server_id":"00000019-6619-4cb1-9710-37d1b83e90ec","status":"ACTIVE"}]},{"name":"worker","count":2,"node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","created":"2026-01-01T00:00:00","updated":"2026-01-01T00:00:00","instances":[{"instance_name":"mine-worker-001","instance_id":"0000000f-e61a-441c-92e0-c8b2bad640fb","volumes":[],"internal_ip":"127.1.0.11","management_ip":"127.1.0.11","server_id":"0000001c-b421-4aeb-9340-97cabaf3897a","status":"ACTIVE"},{"instance_name":"mine-worker-002","instance_id":"00000010-5487-4e1e-af19-922ad9b8a714","volumes":[],"internal_ip":"127.1.0.12","management_ip":"127.1.0.12","server_id":"0000001f-cd9d-4b7d-a47a-8333f7b0b7d2","status":"ACTIVE"}]}],"created_at":"2026-01-01 00:00:00.000000","updated_at":"2026-01-01 00:00:00.100000","cluster_template_id":"00000009-c17c-4279-a3c6-612f48268673","user_keypair_id":"demo"}',0,'mine',3,'2026-01-01 00:00:00.000000');
CREATE TABLE daemons (
  id text  primary key,
  about text not null,
  until_s double precision not null
, knows integer not null default 0);
CREATE TABLE data_sources (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  type text  not null,
  url text  not null,
  created_at text  not null,
  record text not null,
  sealed text
);
INSERT INTO "data_sources" VALUES('00000026-3405-495c-8a50-06c1ec188efb','demo','data-in','objstore','objstore://demo.svcd/data/in','2026-01-01 00:00:01.000000','{"created_at":"2026-01-01 00:00:01.000000","credentials":null,"description":null,"id":"00000026-3405-495c-8a50-06c1ec188efb","name":"data-in","tenant_id":"demo","type":"objstore","updated_at":null,"url":"objstore://demo.svcd/data/in"}','f1:gAAAAABrCCHP5PcXptNUbgxRdHwa0w3QWHklchoHmItbizc8h3693HZAFQJbTx97H0-Y_gKhmoUDLQpUlgjJKDaCH0Zx2DWfPY9RdEayBgp6Sr29HP8JmzaV-dtSFS6M1nL7NhljuTbJULIdMPu6hwpLVzWVG6_98Q==');
INSERT INTO "data_sources" VALUES('00000027-9a6a-4f92-8ca7-4147f6be1f72','demo','data-out','objstore','objstore://demo.svcd/data/out','2026-01-01 00:00:01.000000','{"created_at":"2026-01-01 00:00:01.000000","credentials":null,"description":null,"id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","name":"data-out","tenant_id":"demo","type":"objstore","updated_at":null,"url":"objstore://demo.svcd/data/out"}','f1:gAAAAABrCCHPibj-Cydsc1tL6RcLGi8bka4A_ho-l8Sf3JjYEK4nwJMW7YiEkU9mkqx13acSgC889Nv92TY8P7IQ0WoA2xnTieMj-NljgQ3oRfYsy4_SE7V-ksiD8V34TmXSUkO02YMG_w6eLa4t8frMmh_UxzspBg==');
CREATE TABLE execution_log_pieces (
  execution_id text  not null references execution_logs (execution_id) on delete cascade,
  start_offset integer not null,
  end_offset integer not null,
  size integer not null,
  content blob not null,
  primary key (execution_id, start_offset)
);
INSERT INTO "execution_log_pieces" VALUES('00000028-49a3-480e-966e-12778c1745a7',0,167,149,X'789C2D4EC10E823014BBF315EF037CC9367103E2BC001A4DD48318CF035E74266E0798317EBD83D836BD344DABF506C8DDAD23586B9D348FB000C6E1601C08262430564CE2B03B36B03F6DCF3084F665C791FA98CD4021198F9C30397AFFB584C3BBEBF196E838F0F42DD087BA305AEFFE3591619A9B25A61923CCA524E442A9ACE32A5D1955C0E55A96755DD5D5FCEB076CBA2B65');
INSERT INTO "execution_log_pieces" VALUES('00000029-98a6-416d-9775-336d71eacd05',0,274,219,X'789C5D8E4D4EC3301085F739C53B0096EC942624256C20A04069594482AD6BBB89A1F120DB4188D3E346AC981F69464F6FE66B9A1B1837586770DD34593FCE17E0028FD221E77901CEEB5482E3E1B947B7BBDF23CC87C9C66874D2CE21585E709172595233A21F6B58F8529ABD664D7AF04E07986FA3E668C9FDD9F28A5557B26097A2D0AC2ACB355BAD0A5D0A2395E6EB1A4FDD76DBDE2D50EDDB6DFBD277FB1DAC3BDF628EB4A921C347828884A3B4A70D14796F54441C0D3E3D0D5E4E200F1B03B48C72B308271A40C734DAF08F6A9401137993FD0288AE512C');
CREATE TABLE execution_logs (
  execution_id text  primary key references executions (id) on delete cascade,
  tenant_id text  not null,
  version integer not null,
  start_offset integer not null,
  end_offset integer not null,
  complete integer not null,
  size integer not null,
  saved_at text  not null,
  state text not null
);
INSERT INTO "execution_logs" VALUES('00000028-49a3-480e-966e-12778c1745a7','demo',3,0,167,1,149,'2026-01-01 00:00:13.000000','{"complete":true,"end":0,"execution_id":"00000028-49a3-480e-966e-12778c1745a7","last":"engine","sources":[{"seen":82,"tail":"Thu, 01 Jan 2026 00:00:01 GMT INFO submitted 0000000-260101000001000-oozie-svcd-W\n","title":"engine"}],"start":0,"version":0}');
INSERT INTO "execution_logs" VALUES('00000029-98a6-416d-9775-336d71eacd05','demo',3,0,274,1,219,'2026-01-01 00:00:18.000000','{"complete":true,"end":0,"execution_id":"00000029-98a6-416d-9775-336d71eacd05","last":"engine","sources":[{"seen":82,"tail":"Thu, 01 Jan 2026 00:00:10 GMT INFO submitted 0000001-260101000001000-oozie-svcd-W\n","title":"engine"}],"start":0,"version":0}');
CREATE TABLE executions (
  id text  primary key,
  tenant_id text  not null,
  job_id text  not null,
  cluster_id text ,
  input_id text ,
  output_id text ,
  status text  not null,
  ended integer not null,
  hidden integer not null,
  version integer not null,
  created_at text  not null,
  record text not null,
  wire text not null
);
INSERT INTO "executions" VALUES('00000028-49a3-480e-966e-12778c1745a7','demo','00000025-d080-466e-952f-233a8c25166a','0000000d-e6f4-490b-9a16-4106cf6a659e','00000026-3405-495c-8a50-06c1ec188efb','00000027-9a6a-4f92-8ca7-4147f6be1f72','SUCCEEDED',1,0,8,'2026-01-01 00:00:01.000000','{"attempts":0,"cancel_requested":false,"cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","created_at":"2026-01-01 00:00:01.000000","delete_requested":false,"doubt":null,"end_time":"2026-01-01 00:00:06.000000","failure":null,"id":"00000028-49a3-480e-966e-12778c1745a7","input_id":"00000026-3405-495c-8a50-06c1ec188efb","job_configs":{"args":{},"configs":{},"params":{}},"job_id":"00000025-d080-466e-952f-233a8c25166a","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","progress":1.0,"record":{"appName":"svcd-00000028-49a3-480e-966e-12778c1745a7","externalId":"00000028-49a3-480e-966e-12778c1745a7","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000028-49a3-480e-966e-12778c1745a7</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:06 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000000-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:01 GMT","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Workflow id[0000000-260101000001000-oozie-svcd-W] status[SUCCEEDED]","id":"0000000-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"OK","externalStatus":"SUCCEEDED","externalId":"application_1767225600000_0001","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0001/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"end","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[job-node] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@end","name":"end","type":":END:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:06 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[end] status[OK]"}],"status":"SUCCEEDED","group":null},"retry_at":null,"return_code":0,"staged":true,"start_time":"2026-01-01 00:00:01.000000","status":"SUCCEEDED","submits":1,"submitting":false,"suspended_since":null,"tenant_id":"demo","updated_at":"2026-01-01 00:00:10.000000","version":8,"waiting":null,"workflow_dir":null,"workflow_job_id":"0000000-260101000001000-oozie-svcd-W"}','{"id":"00000028-49a3-480e-966e-12778c1745a7","job_id":"00000025-d080-466e-952f-233a8c25166a","cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","input_id":"00000026-3405-495c-8a50-06c1ec188efb","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","job_configs":{},"info":{"appName":"svcd-00000028-49a3-480e-966e-12778c1745a7","externalId":"00000028-49a3-480e-966e-12778c1745a7","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000028-49a3-480e-966e-12778c1745a7</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:06 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000000-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:01 GMT","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Workflow id[0000000-260101000001000-oozie-svcd-W] status[SUCCEEDED]","id":"0000000-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"OK","externalStatus":"SUCCEEDED","externalId":"application_1767225600000_0001","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0001/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"end","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[job-node] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@end","name":"end","type":":END:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:06 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[end] status[OK]"}],"status":"SUCCEEDED","group":null},"workflow_job_id":"0000000-260101000001000-oozie-svcd-W","return_code":0,"progress":1.0,"tenant_id":"demo","start_time":"2026-01-01T00:00:01","end_time":"2026-01-01T00:00:06","created_at":"2026-01-01 00:00:01.000000","updated_at":"2026-01-01 00:00:10.000000"}');
INSERT INTO "executions" VALUES('00000029-98a6-416d-9775-336d71eacd05','demo','00000025-d080-466e-952f-233a8c25166a','0000000d-e6f4-490b-9a16-4106cf6a659e','00000026-3405-495c-8a50-06c1ec188efb','00000027-9a6a-4f92-8ca7-4147f6be1f72','KILLED',1,0,7,'2026-01-01 00:00:10.000000','{"attempts":0,"cancel_requested":false,"cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","created_at":"2026-01-01 00:00:10.000000","delete_requested":false,"doubt":null,"end_time":"2026-01-01 00:00:15.000000","failure":{"code":"EXCEPTION","step":"job-node","text":"asked to fail; correct the program or its data; the log of this job execution has more"},"id":"00000029-98a6-416d-9775-336d71eacd05","input_id":"00000026-3405-495c-8a50-06c1ec188efb","job_configs":{"args":{},"configs":{"svcd.fake.outcome":"fail"},"params":{}},"job_id":"00000025-d080-466e-952f-233a8c25166a","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","progress":null,"record":{"appName":"svcd-00000029-98a6-416d-9775-336d71eacd05","externalId":"00000029-98a6-416d-9775-336d71eacd05","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000029-98a6-416d-9775-336d71eacd05</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:15 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000001-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:10 GMT","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Workflow id[0000001-260101000001000-oozie-svcd-W] status[KILLED]","id":"0000001-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"JA018","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"ERROR","externalStatus":"FAILED/KILLED","externalId":"application_1767225600000_0002","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0002/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property><ns0:property><ns0:name>svcd.fake.outcome</ns0:name><ns0:value>fail</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"fail","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[job-node] status[ERROR]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"E0729","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@fail","name":"fail","type":":KILL:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"${wf:errorMessage(wf:lastErrorNode())}","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:15 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[fail] status[OK]"}],"status":"KILLED","group":null},"retry_at":null,"return_code":null,"staged":true,"start_time":"2026-01-01 00:00:10.000000","status":"KILLED","submits":1,"submitting":false,"suspended_since":null,"tenant_id":"demo","updated_at":"2026-01-01 00:00:15.000000","version":7,"waiting":null,"workflow_dir":null,"workflow_job_id":"0000001-260101000001000-oozie-svcd-W"}','{"id":"00000029-98a6-416d-9775-336d71eacd05","job_id":"00000025-d080-466e-952f-233a8c25166a","cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","input_id":"00000026-3405-495c-8a50-06c1ec188efb","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","job_configs":{"configs":{"svcd.fake.outcome":"fail"},"args":{},"params":{}},"info":{"appName":"svcd-00000029-98a6-416d-9775-336d71eacd05","externalId":"00000029-98a6-416d-9775-336d71eacd05","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000029-98a6-416d-9775-336d71eacd05</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:15 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000001-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:10 GMT","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Workflow id[0000001-260101000001000-oozie-svcd-W] status[KILLED]","id":"0000001-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"JA018","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"ERROR","externalStatus":"FAILED/KILLED","externalId":"application_1767225600000_0002","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0002/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property><ns0:property><ns0:name>svcd.fake.outcome</ns0:name><ns0:value>fail</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"fail","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[job-node] status[ERROR]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"E0729","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@fail","name":"fail","type":":KILL:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"${wf:errorMessage(wf:lastErrorNode())}","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:15 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[fail] status[OK]"}],"status":"KILLED","group":null,"failure":{"code":"EXCEPTION","step":"job-node","text":"asked to fail; correct the program or its data; the log of this job execution has more"}},"workflow_job_id":"0000001-260101000001000-oozie-svcd-W","return_code":null,"progress":null,"tenant_id":"demo","start_time":"2026-01-01T00:00:10","end_time":"2026-01-01T00:00:15","created_at":"2026-01-01 00:00:10.000000","updated_at":"2026-01-01 00:00:15.000000"}');
CREATE TABLE feed (
  id integer primary key,
  epoch text  not null,
  number integer not null
);
INSERT INTO "feed" VALUES(1,'2026-01-01 00:00:00.000000',65);
CREATE TABLE feed_cuts (
  tenant_id text  primary key,
  number integer not null
);
CREATE TABLE feed_marks (
  at text  primary key,
  number integer not null
);
CREATE TABLE internals (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  upload_id text  not null,
  created_at text  not null,
  record text not null
, size integer not null default 0);
INSERT INTO "internals" VALUES('00000023-8d1f-49b7-8d2b-9deb1beb3711','demo','count.pig','00000022-7d41-4602-aece-328bff7b118e','2026-01-01 00:00:01.000000','{"created_at":"2026-01-01 00:00:01.000000","datasize":16,"digest":"9b73c82270f57f6b33082759ff4fb2b3c51a3b461adffc71e50af9763c59ff7f","id":"00000023-8d1f-49b7-8d2b-9deb1beb3711","name":"count.pig","tenant_id":"demo","updated_at":null}',16);
INSERT INTO "internals" VALUES('pieces','demo','in-pieces.jar','pieces','2026-01-01 00:00:25.000000','{"created_at":"2026-01-01 00:00:25.000000","datasize":20,"digest":"63088ddf48e631820a55683a834534bda1c7b6280bcd09b099b6372aab96a4fb","id":"pieces","name":"in-pieces.jar","tenant_id":"demo","updated_at":null}',20);
CREATE TABLE job_binaries (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  url text  not null,
  created_at text  not null,
  record text not null,
  sealed text
);
INSERT INTO "job_binaries" VALUES('00000024-1ff3-4849-b4e1-357d4a84eb03','demo','count.pig','internaldb://00000023-8d1f-49b7-8d2b-9deb1beb3711','2026-01-01 00:00:01.000000','{"created_at":"2026-01-01 00:00:01.000000","description":null,"extra":null,"id":"00000024-1ff3-4849-b4e1-357d4a84eb03","name":"count.pig","tenant_id":"demo","updated_at":null,"url":"internaldb://00000023-8d1f-49b7-8d2b-9deb1beb3711"}',NULL);
INSERT INTO "job_binaries" VALUES('0000002a-5129-4b7c-a288-e1a5cc457821','demo','kept-outside.jar','objstore-internal://box/kept.jar','2026-01-01 00:00:15.000000','{"created_at":"2026-01-01 00:00:15.000000","description":null,"extra":null,"id":"0000002a-5129-4b7c-a288-e1a5cc457821","name":"kept-outside.jar","tenant_id":"demo","updated_at":null,"url":"objstore-internal://box/kept.jar"}','f1:gAAAAABrCCHPvDVXg4agonO2_y4uvwPiGJsiDHRnqfwmMCtiqnVodHSk3PCeOIRrUkypXsZcGiAiwJzrWCCo2wDU99sWYkXArcLZKKPbZgmpuZUdRWfxxyvGbiFBhAjbFqk_G96w98CMaj3KfDpUSvw1AF2-jEAGqw==');
CREATE TABLE job_credentials (
  name text  primary key,
  execution_id text  not null,
  cluster_id text  not null,
  tenant_id text  not null,
  sealed text not null,
  asked_at text  not null,
  expires_at text  not null,
  due_at text  not null,
  tries integer not null,
  trouble text not null
);
INSERT INTO "job_credentials" VALUES('svcd:noted','gone','0000000d-e6f4-490b-9a16-4106cf6a659e','demo','f1:gAAAAABrCCHPE8juX9AX1Q8GxeHKIzkfX1mFTswdnlPdSvZlZEQxkWd_h2kbDsOYaSChk9D_LIritEPi5XqxnWeEwX7Q5qQHmsj_tB1HQJqCZl9d6gI-G-kbovoFal7Vz0h_Q-0asKXG9T4bL9ytAd2H4ohKNH9YWC_eM0-yl5NznVd8uwGFBZdJmkIt-z2aAumdNAWQ129i','2026-01-01 00:00:25.000000','2026-01-01 00:10:25.000000','2026-01-01 00:05:25.000000',0,'it''s "100%" :name \ ü 漢 🐍');
CREATE TABLE jobs (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  type text  not null,
  created_at text  not null,
  refs text  not null,
  record text not null
);
INSERT INTO "jobs" VALUES('00000025-d080-466e-952f-233a8c25166a','demo','count','Pig','2026-01-01 00:00:01.000000',' 00000024-1ff3-4849-b4e1-357d4a84eb03 ','{"created_at":"2026-01-01 00:00:01.000000","description":null,"id":"00000025-d080-466e-952f-233a8c25166a","libs":[],"mains":["00000024-1ff3-4849-b4e1-357d4a84eb03"],"name":"count","tenant_id":"demo","type":"Pig","updated_at":null}');
CREATE TABLE kept_answers (
  id text  primary key,
  tenant_id text  not null,
  created_at text  not null,
  request text  not null,
  sealed text not null
);
INSERT INTO "kept_answers" VALUES('8afd7112601d61a2c975b9d4a958ae897113586574f7728c1d634a1b8ecddadd','demo','2026-01-01 00:00:15.000000','2341a301c21caf546dbb072e8709b07a1bcecffbfe41de018b43132eb1d9d0d5','f1:gAAAAABrCCHPe-igbENtMWV0DMrHl4yXv9a5fS0yykguegD1o-yCuroZR1hXMc3iF_L3LAliIYUvosZlUebYhhiO7kWsfmpepHmauX_7KsWfFIATBXKLO7IHVe0sdhOjPTM58gnvpp7MLrDRINEDP_W8XZT3UDc7gZk3nfBVy3rHKIztENtSMThERN7jTypP099aDdJ176w4lEVTldpbJB3aMPX6E48e0RTzaWxolMjXXZ76t7BnNcq2I54fLaresQCY_vtH89QRqsjuW22bT4ftYquUNqE26cen1hHV5IK0gA8tnjP3jq1Ek5cr4aj7JJLHPh-1as8DYTzO5m-_EIoC6L7kXDFi1McONFfRRllzZvhvsiFTn1M8jIE5bSU7JGwwlK-5N9gB9BCwSuv5jYRPJUC7CB3hRg==');
CREATE TABLE leases (
  shard integer primary key,
  holder text  not null,
  epoch integer not null,
  free_s double precision not null
);
INSERT INTO "leases" VALUES(0,'',0,0.0);
INSERT INTO "leases" VALUES(1,'',0,0.0);
INSERT INTO "leases" VALUES(2,'',0,0.0);
INSERT INTO "leases" VALUES(3,'',0,0.0);
INSERT INTO "leases" VALUES(4,'',0,0.0);
INSERT INTO "leases" VALUES(5,'',0,0.0);
INSERT INTO "leases" VALUES(6,'',0,0.0);
INSERT INTO "leases" VALUES(7,'',0,0.0);
INSERT INTO "leases" VALUES(8,'',0,0.0);
INSERT INTO "leases" VALUES(9,'',0,0.0);
INSERT INTO "leases" VALUES(10,'',0,0.0);
INSERT INTO "leases" VALUES(11,'',0,0.0);
INSERT INTO "leases" VALUES(12,'',0,0.0);
INSERT INTO "leases" VALUES(13,'',0,0.0);
INSERT INTO "leases" VALUES(14,'',0,0.0);
INSERT INTO "leases" VALUES(15,'',0,0.0);
INSERT INTO "leases" VALUES(16,'',0,0.0);
INSERT INTO "leases" VALUES(17,'',0,0.0);
INSERT INTO "leases" VALUES(18,'',0,0.0);
INSERT INTO "leases" VALUES(19,'',0,0.0);
INSERT INTO "leases" VALUES(20,'',0,0.0);
INSERT INTO "leases" VALUES(21,'',0,0.0);
INSERT INTO "leases" VALUES(22,'',0,0.0);
INSERT INTO "leases" VALUES(23,'',0,0.0);
INSERT INTO "leases" VALUES(24,'',0,0.0);
INSERT INTO "leases" VALUES(25,'',0,0.0);
INSERT INTO "leases" VALUES(26,'',0,0.0);
INSERT INTO "leases" VALUES(27,'',0,0.0);
INSERT INTO "leases" VALUES(28,'',0,0.0);
INSERT INTO "leases" VALUES(29,'',0,0.0);
INSERT INTO "leases" VALUES(30,'',0,0.0);
INSERT INTO "leases" VALUES(31,'',0,0.0);
INSERT INTO "leases" VALUES(32,'',0,0.0);
INSERT INTO "leases" VALUES(33,'',0,0.0);
INSERT INTO "leases" VALUES(34,'',0,0.0);
INSERT INTO "leases" VALUES(35,'',0,0.0);
INSERT INTO "leases" VALUES(36,'',0,0.0);
INSERT INTO "leases" VALUES(37,'',0,0.0);
INSERT INTO "leases" VALUES(38,'',0,0.0);
INSERT INTO "leases" VALUES(39,'',0,0.0);
INSERT INTO "leases" VALUES(40,'',0,0.0);
INSERT INTO "leases" VALUES(41,'',0,0.0);
INSERT INTO "leases" VALUES(42,'',0,0.0);
INSERT INTO "leases" VALUES(43,'',0,0.0);
INSERT INTO "leases" VALUES(44,'',0,0.0);
INSERT INTO "leases" VALUES(45,'',0,0.0);
INSERT INTO "leases" VALUES(46,'',0,0.0);
INSERT INTO "leases" VALUES(47,'',0,0.0);
INSERT INTO "leases" VALUES(48,'',0,0.0);
INSERT INTO "leases" VALUES(49,'',0,0.0);
INSERT INTO "leases" VALUES(50,'',0,0.0);
INSERT INTO "leases" VALUES(51,'',0,0.0);
INSERT INTO "leases" VALUES(52,'',0,0.0);
INSERT INTO "leases" VALUES(53,'',0,0.0);
INSERT INTO "leases" VALUES(54,'',0,0.0);
INSERT INTO "leases" VALUES(55,'',0,0.0);
INSERT INTO "leases" VALUES(56,'',0,0.0);
INSERT INTO "leases" VALUES(57,'',0,0.0);
INSERT INTO "leases" VALUES(58,'',0,0.0);
INSERT INTO "leases" VALUES(59,'',0,0.0);
INSERT INTO "leases" VALUES(60,'',0,0.0);
INSERT INTO "leases" VALUES(61,'',0,0.0);
INSERT INTO "leases" VALUES(62,'',0,0.0);
INSERT INTO "leases" VALUES(63,'',0,0.0);
CREATE TABLE loose_trusts (
  id text  primary key,
  cluster_id text  not null,
  tenant_id text  not null,
  trustor_id text  not null,
  mark text  not null,
  trust_id text  not null,
  doomed integer not null,
  asked_at text  not null,
  due_at text  not null,
  tries integer not null,
  trouble text not null
);
INSERT INTO "loose_trusts" VALUES('loose','0000000d-e6f4-490b-9a16-4106cf6a659e','demo','somebody','2142-09-28T14:28:54.000000Z','',0,'2026-01-01 00:00:25.000000','2026-01-01 00:05:25.000000',0,'it''s "100%" :name \ ü 漢 🐍');
CREATE TABLE node_group_templates (
  id text  primary key,
  tenant_id text  not null,
  name text  not null,
  plugin_name text  not null,
  engine_version text  not null,
  flavor_id text  not null,
  created_at text  not null,
  record text not null,
  wire text not null
);
INSERT INTO "node_group_templates" VALUES('00000008-23a7-411a-8133-287637ebdcd9','demo','workers','fake','0.1','2','2026-01-01 00:00:00.000000','{"created_at":"2026-01-01 00:00:00.000000","description":"it''s \"100%\" :name \\ ü 漢 🐍","engine_version":"0.1","id":"00000008-23a7-411a-8133-287637ebdcd9","name":"workers","plugin_name":"fake","tenant_id":"demo","updated_at":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}','{"id":"00000008-23a7-411a-8133-287637ebdcd9","name":"workers","description":"it''s \"100%\" :name \\ ü 漢 🐍","plugin_name":"fake","engine_version":"0.1","node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk"}');
CREATE TABLE pieces (
  upload_id text  not null,
  number integer not null,
  content blob not null,
  primary key (upload_id, number)
);
INSERT INTO "pieces" VALUES('00000022-7d41-4602-aece-328bff7b118e',0,X'2D2D20646F6573206E6F7468696E670A');
INSERT INTO "pieces" VALUES('cut-short',0,X'6E657665722066696E6973686564');
INSERT INTO "pieces" VALUES('pieces',0,X'0001FF');
INSERT INTO "pieces" VALUES('pieces',1,X'');
INSERT INTO "pieces" VALUES('pieces',2,X'C3A427225C25733A6E616D653B0A');
INSERT INTO "pieces" VALUES('pieces',3,X'656E64');
CREATE TABLE schema_version (
  number integer primary key,
  applied_at text not null
, serves integer not null default 0);
INSERT INTO "schema_version" VALUES(1,'2026-01-01 00:00:00.000000',1);
INSERT INTO "schema_version" VALUES(2,'2026-01-01 00:00:00.000000',2);
INSERT INTO "schema_version" VALUES(3,'2026-01-01 00:00:00.000000',3);
INSERT INTO "schema_version" VALUES(4,'2026-01-01 00:00:00.000000',4);
INSERT INTO "schema_version" VALUES(5,'2026-01-01 00:00:00.000000',5);
INSERT INTO "schema_version" VALUES(6,'2026-01-01 00:00:00.000000',6);
INSERT INTO "schema_version" VALUES(7,'2026-01-01 00:00:00.000000',7);
INSERT INTO "schema_version" VALUES(8,'2026-01-01 00:00:00.000000',8);
INSERT INTO "schema_version" VALUES(9,'2026-01-01 00:00:00.000000',9);
INSERT INTO "schema_version" VALUES(10,'2026-01-01 00:00:00.000000',10);
INSERT INTO "schema_version" VALUES(11,'2026-01-01 00:00:00.000000',11);
INSERT INTO "schema_version" VALUES(12,'2026-01-01 00:00:00.000000',12);
INSERT INTO "schema_version" VALUES(13,'2026-01-01 00:00:00.000000',13);
INSERT INTO "schema_version" VALUES(14,'2026-01-01 00:00:00.000000',14);
INSERT INTO "schema_version" VALUES(15,'2026-01-01 00:00:00.000000',15);
INSERT INTO "schema_version" VALUES(16,'2026-01-01 00:00:00.000000',16);
INSERT INTO "schema_version" VALUES(17,'2026-01-01 00:00:00.000000',17);
INSERT INTO "schema_version" VALUES(18,'2026-01-01 00:00:00.000000',17);
CREATE TABLE seals (
  id integer primary key,
  sealed text not null
);
INSERT INTO "seals" VALUES(1,'f1:gAAAAABrCCHPEFU7e_tVFCqddihoCQBk_sScErBkIh3wEjW1w_reOrUtldwuGQXOt91OHuN3dcStRpmhcJ1AcIE1FBaJ0Fa0qA==');
CREATE TABLE uploads (
  id text  primary key
, holder text  not null default '', tenant_id text  not null default '', size integer not null default 0);
INSERT INTO "uploads" VALUES('cut-short','','demo',100);
CREATE UNIQUE INDEX node_group_templates_name on node_group_templates (tenant_id, name);
CREATE INDEX node_group_templates_page on node_group_templates (tenant_id, created_at, id);
CREATE UNIQUE INDEX cluster_templates_name on cluster_templates (tenant_id, name);
CREATE INDEX cluster_templates_page on cluster_templates (tenant_id, created_at, id);
CREATE UNIQUE INDEX clusters_name on clusters (tenant_id, name);
CREATE INDEX clusters_page on clusters (tenant_id, created_at, id);
CREATE INDEX clusters_unsettled on clusters (created_at, id) where generation > settled_generation;
CREATE INDEX clusters_transient on clusters (id) where is_transient = 1;
CREATE UNIQUE INDEX data_sources_name on data_sources (tenant_id, name);
CREATE INDEX data_sources_page on data_sources (tenant_id, created_at, id);
CREATE UNIQUE INDEX internals_name on internals (tenant_id, name);
CREATE INDEX internals_page on internals (tenant_id, created_at, id);
CREATE UNIQUE INDEX internals_upload on internals (upload_id);
CREATE UNIQUE INDEX job_binaries_name on job_binaries (tenant_id, name);
CREATE INDEX job_binaries_page on job_binaries (tenant_id, created_at, id);
CREATE INDEX job_binaries_url on job_binaries (tenant_id, url);
CREATE UNIQUE INDEX jobs_name on jobs (tenant_id, name);
CREATE INDEX jobs_page on jobs (tenant_id, created_at, id);
CREATE INDEX executions_page on executions (tenant_id, created_at, id);
CREATE INDEX executions_job on executions (job_id);
CREATE INDEX executions_cluster on executions (cluster_id);
CREATE INDEX executions_input on executions (input_id);
CREATE INDEX executions_output on executions (output_id);
CREATE INDEX executions_unfinished on executions (created_at, id) where ended = 0;
CREATE INDEX executions_hidden on executions (created_at, id) where hidden = 1;
CREATE INDEX leases_holder on leases (holder);
CREATE UNIQUE INDEX clusters_name_key on clusters (tenant_id, name_key);
CREATE INDEX job_credentials_execution on job_credentials (execution_id);
CREATE INDEX job_credentials_tenant on job_credentials (tenant_id);
CREATE INDEX executions_open on executions (tenant_id) where ended = 0;
CREATE INDEX internals_size on internals (tenant_id, size);
CREATE INDEX uploads_size on uploads (tenant_id, size);
CREATE INDEX executions_ended on executions (created_at, id) where ended = 1 and hidden = 0;
CREATE INDEX changes_feed on changes (tenant_id, number);
CREATE INDEX changes_expiring on changes (number) where expires = 1;
CREATE INDEX kept_answers_tenant on kept_answers (tenant_id, created_at);
CREATE INDEX kept_answers_age on kept_answers (created_at);
CREATE INDEX clusters_instances on clusters (tenant_id, instances, id);
CREATE INDEX execution_logs_oldest on execution_logs (tenant_id, saved_at, execution_id, size)
 where size > 0;
CREATE INDEX changes_expiring_tenant on changes (tenant_id, number) where expires = 1;
CREATE INDEX clusters_status on clusters (status);
CREATE INDEX clusters_accepted on clusters (accepted_at) where generation > settled_generation;
CREATE INDEX executions_status on executions (status, created_at) where ended = 0;
CREATE INDEX executions_heads on executions (created_at, id, version, cluster_id, ended) where ended = 0;
COMMIT;
