-- What each status tick looks for: ended executions whose deletion is still to be carried out.
create index executions_hidden on executions (created_at, id) where hidden = 1;
