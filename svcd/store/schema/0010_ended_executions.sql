-- What pruning reads: ended executions, oldest first.
create index executions_ended on executions (created_at, id) where ended = 1 and hidden = 0;
