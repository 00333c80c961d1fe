-- The kept logs of job executions.
-- start_offset: of the first byte that is kept; end_offset: of the byte after the last one. size: of
-- its pieces, compressed. state: JSON, what svcd has seen of the files.
create table execution_logs (
  execution_id text {c} primary key references executions (id) on delete cascade,
  tenant_id text {c} not null,
  version integer not null,
  start_offset {bigint} not null,
  end_offset {bigint} not null,
  complete integer not null,
  size integer not null,
  saved_at text {c} not null,
  state text not null
);
create index execution_logs_oldest on execution_logs (tenant_id, saved_at, execution_id, size)
 where size > 0;

-- content: compressed with zlib.
create table execution_log_pieces (
  execution_id text {c} not null references execution_logs (execution_id) on delete cascade,
  start_offset {bigint} not null,
  end_offset {bigint} not null,
  size integer not null,
  content {blob} not null,
  primary key (execution_id, start_offset)
);
