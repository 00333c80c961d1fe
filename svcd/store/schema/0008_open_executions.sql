-- What each execute request counts: the open executions of its tenant.
create index executions_open on executions (tenant_id) where ended = 0;
