-- used: some execution was accepted for the cluster, also when its row is gone by now.
alter table clusters add column used integer not null default 0;
update clusters set used = 1
 where exists (select 1 from executions e where e.cluster_id = clusters.id);
