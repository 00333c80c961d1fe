-- serves: 0017
-- Every status tick asks for the versions of all unfinished executions. In SQLite this index has all
-- that it reads, and the large rows are left alone. PostgreSQL keeps large texts beside its rows, and
-- an index with the version would have to follow each write.
{sqlite}create index executions_heads on executions (created_at, id, version, cluster_id, ended) where ended = 0;
