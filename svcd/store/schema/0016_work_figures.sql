-- accepted_at: when the newest request of a cluster was accepted; '' where an older release wrote it.
-- The metrics count clusters and open executions by status, and ask for the oldest unsettled one.
alter table clusters add column accepted_at text {c} not null default '';
update clusters set accepted_at = created_at where generation = 1;
create index clusters_status on clusters (status);
create index clusters_accepted on clusters (accepted_at) where generation > settled_generation;
create index executions_status on executions (status, created_at) where ended = 0;
