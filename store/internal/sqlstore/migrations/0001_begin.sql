-- A request is one document; the columns beside it are what filters and lists read, so that no list ever reads a document.
CREATE TABLE requests (
  tenant      {{text}} NOT NULL,
  id          {{text}} NOT NULL,
  version     {{int}}  NOT NULL,
  state       {{text}} NOT NULL,
  cause       {{text}} NOT NULL,
  agent       {{text}} NOT NULL,
  target      {{text}} NOT NULL,
  principal   {{text}} NOT NULL,
  message     {{text}} NOT NULL,
  rules       {{text}} NOT NULL,
  group_names {{text}} NOT NULL,
  approvals   {{int}}  NOT NULL,
  needed      {{int}}  NOT NULL,
  created     {{int}}  NOT NULL,
  deadline    {{int}}  NOT NULL,
  due         {{int}},
  closed      {{int}},
  binding     {{text}} NOT NULL,
  pruned      {{int}}  NOT NULL,
  body        {{text}} NOT NULL,
  PRIMARY KEY (tenant, id)
) {{documents}};
-- Two replicas that open the same call at once make one card.
CREATE UNIQUE INDEX requests_pending ON requests (tenant, binding) WHERE state = 'pending';
-- Only the primary key begins with the tenant: while a table is empty, Postgres would take another index for as good, and keep to that plan.
CREATE INDEX requests_binding ON requests (binding, tenant, created);
CREATE INDEX requests_created ON requests (state, tenant, created, group_names);
CREATE INDEX requests_deadline ON requests (tenant, deadline, group_names) WHERE state = 'pending';
CREATE INDEX requests_due ON requests (due) WHERE due IS NOT NULL;
CREATE INDEX requests_similar ON requests (tenant, agent, target, closed) WHERE closed IS NOT NULL;
CREATE INDEX requests_prune ON requests (tenant, closed) WHERE closed IS NOT NULL AND pruned = 0;

CREATE TABLE grants (
  tenant   {{text}} NOT NULL,
  id       {{text}} NOT NULL,
  agent    {{text}} NOT NULL,
  target   {{text}} NOT NULL,
  created  {{int}}  NOT NULL,
  expires  {{int}}  NOT NULL,
  revoked  {{int}},
  max_uses {{int}}  NOT NULL,
  uses     {{int}}  NOT NULL,
  pruned   {{int}}  NOT NULL,
  body     {{text}} NOT NULL,
  PRIMARY KEY (tenant, id)
) {{strict}};
CREATE INDEX grants_live ON grants (tenant, agent, target) WHERE revoked IS NULL;

CREATE TABLE freezes (
  tenant {{text}} NOT NULL,
  agent  {{text}} NOT NULL,
  person {{text}} NOT NULL,
  reason {{text}} NOT NULL,
  at     {{int}}  NOT NULL,
  lifted {{int}},
  PRIMARY KEY (tenant, agent)
) {{strict}};

CREATE TABLE memories (
  tenant   {{text}} NOT NULL,
  name     {{text}} NOT NULL,
  digest   {{text}} NOT NULL,
  request  {{text}} NOT NULL,
  grant_id {{text}} NOT NULL,
  expires  {{int}}  NOT NULL,
  PRIMARY KEY (tenant, name)
) {{strict}};
CREATE INDEX memories_expires ON memories (expires);

CREATE TABLE votes (
  seq     {{serial}},
  tenant  {{text}} NOT NULL,
  request {{text}} NOT NULL,
  agent   {{text}} NOT NULL,
  target  {{text}} NOT NULL,
  person  {{text}} NOT NULL,
  verdict {{text}} NOT NULL,
  waited  {{int}}  NOT NULL,
  at      {{int}}  NOT NULL
) {{strict}};
CREATE INDEX votes_at ON votes (tenant, at);

-- Entries get their index in the tree when they are sealed.
CREATE TABLE entries (
  seq      {{serial}},
  tenant   {{text}} NOT NULL,
  idx      {{int}},
  type     {{text}} NOT NULL,
  subject  {{text}} NOT NULL,
  at       {{int}}  NOT NULL,
  leaf     {{blob}} NOT NULL,
  openings {{blob}}
) {{strict}};
CREATE INDEX entries_unsealed ON entries (tenant, seq) WHERE idx IS NULL;
CREATE UNIQUE INDEX entries_sealed ON entries (tenant, idx) WHERE idx IS NOT NULL;
CREATE INDEX entries_subject ON entries (subject, tenant, idx) WHERE idx IS NOT NULL;

CREATE TABLE hashes (
  tenant {{text}} NOT NULL,
  pos    {{int}}  NOT NULL,
  hash   {{blob}} NOT NULL,
  PRIMARY KEY (tenant, pos)
) {{compact}};

-- Entries before index pruned hold no openings.
CREATE TABLE trees (
  tenant     {{text}} NOT NULL PRIMARY KEY,
  size       {{int}}  NOT NULL,
  root       {{blob}} NOT NULL,
  checkpoint {{blob}} NOT NULL,
  pruned     {{int}}  NOT NULL
) {{strict}};

CREATE TABLE tokens (
  id      {{text}} NOT NULL,
  tenant  {{text}} NOT NULL,
  name    {{text}} NOT NULL,
  hash    {{text}} NOT NULL UNIQUE,
  scopes  {{text}} NOT NULL,
  agents  {{text}} NOT NULL,
  person  {{text}} NOT NULL,
  created {{int}}  NOT NULL,
  expires {{int}}  NOT NULL,
  revoked {{int}},
  PRIMARY KEY (tenant, id)
) {{strict}};

CREATE TABLE kept (
  bucket  {{text}} NOT NULL,
  name    {{text}} NOT NULL,
  value   {{blob}} NOT NULL,
  expires {{int}}  NOT NULL,
  PRIMARY KEY (bucket, name)
) {{strict}};
CREATE INDEX kept_expires ON kept (expires);

-- run_at is when a waiting delivery may be claimed next: the end of the lease while somebody holds one.
CREATE TABLE deliveries (
  id      {{serial_once}},
  tenant  {{text}} NOT NULL,
  target  {{text}} NOT NULL,
  event   {{text}} NOT NULL,
  subject {{text}} NOT NULL,
  payload {{text}} NOT NULL,
  state   {{text}} NOT NULL,
  attempt {{int}}  NOT NULL,
  run_at  {{int}}  NOT NULL,
  owner   {{text}} NOT NULL,
  problem {{text}} NOT NULL,
  created {{int}}  NOT NULL
) {{strict}};
CREATE INDEX deliveries_due ON deliveries (target, run_at) WHERE state = 'waiting';
CREATE INDEX deliveries_state ON deliveries (tenant, state, id);

-- Ping writes here.
CREATE TABLE pulse (
  id      {{int}}  NOT NULL PRIMARY KEY,
  payload {{blob}} NOT NULL
) {{strict}};
