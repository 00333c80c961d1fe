-- instances: of all node groups. Each create and each scale request adds up those of its tenant.
alter table clusters add column instances integer not null default 0;
update clusters set instances = {instances};
create index clusters_instances on clusters (tenant_id, instances, id);
