-- Answers to requests with an Idempotency-Key, which are kept for 24 hours.
-- id: HMAC of project, user, route and key. request: HMAC of the values in the path, the query and
-- the body. sealed: the answer's JSON, sealed with the key of the state folder.
create table kept_answers (
  id text {c} primary key,
  tenant_id text {c} not null,
  created_at text {c} not null,
  request text {c} not null,
  sealed text not null
);
create index kept_answers_tenant on kept_answers (tenant_id, created_at);
create index kept_answers_age on kept_answers (created_at);
