-- Rows that a decision depends on have a code that only a holder of the key can make (codes.go).

-- A request is one document. Filters and lists read the other columns, so that no list reads a document. Column answering has who may answer, asker and
-- bytes show from an index how much each token has open, and keyed is the version whose keys table request_keys has: a restored request has none yet.
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
  code        {{blob}},
  line_code   {{blob}},
  answering   {{text}} NOT NULL,
  asker       {{text}} NOT NULL,
  bytes       {{int}}  NOT NULL,
  keyed       {{int}}  NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, id)
) {{documents}};
-- Two replicas that open the same call at once make one card.
CREATE UNIQUE INDEX requests_pending ON requests (tenant, binding) WHERE state = 'pending';
-- Only the primary key begins with the tenant: while a table is empty, Postgres would take another index for as good, and keep to that plan.
CREATE INDEX requests_binding ON requests (binding, tenant, created);
CREATE INDEX requests_created ON requests (state, tenant, created, group_names);
CREATE INDEX requests_deadline ON requests (tenant, deadline, group_names, asker, bytes) WHERE state = 'pending';
CREATE INDEX requests_due ON requests (due) WHERE due IS NOT NULL;
CREATE INDEX requests_similar ON requests (tenant, agent, target, closed) WHERE closed IS NOT NULL;
CREATE INDEX requests_prune ON requests (tenant, closed) WHERE closed IS NOT NULL AND pruned = 0;
CREATE INDEX requests_unkeyed ON requests (tenant) WHERE keyed <> version;

-- Under which keys lists find a request: one row for each group, person and agent's owner who may read or answer it. state is 'open' until the
-- request is closed, so that most changes of a request write nothing here.
CREATE TABLE request_keys (
  tenant   {{text}} NOT NULL,
  name     {{text}} NOT NULL,
  state    {{text}} NOT NULL,
  created  {{int}}  NOT NULL,
  id       {{text}} NOT NULL,
  deadline {{int}}  NOT NULL,
  PRIMARY KEY (tenant, name, state, created, id)
) {{compact}};
CREATE INDEX request_keys_deadline ON request_keys (name, tenant, deadline, id) WHERE state = 'open';

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
  version  {{int}}  NOT NULL,
  code     {{blob}},
  PRIMARY KEY (tenant, id)
) {{strict}};
CREATE INDEX grants_live ON grants (tenant, agent, target) WHERE revoked IS NULL;

-- All freezes in force of a tenant are one row, so that a part of them can't be taken away.
CREATE TABLE frozen (
  tenant  {{text}} NOT NULL PRIMARY KEY,
  version {{int}}  NOT NULL,
  body    {{text}} NOT NULL,
  code    {{blob}}
) {{strict}};

CREATE TABLE memories (
  tenant   {{text}} NOT NULL,
  name     {{text}} NOT NULL,
  digest   {{text}} NOT NULL,
  request  {{text}} NOT NULL,
  grant_id {{text}} NOT NULL,
  expires  {{int}}  NOT NULL,
  code     {{blob}},
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

-- Entries get their index in the tree when they are sealed. An entry names the version that its transaction gave to the row that it is about: the
-- request or the grant that is its subject, or the row of freezes if the subject is empty. 0 means that it changed no row.
CREATE TABLE entries (
  seq      {{serial}},
  tenant   {{text}} NOT NULL,
  idx      {{int}},
  type     {{text}} NOT NULL,
  subject  {{text}} NOT NULL,
  at       {{int}}  NOT NULL,
  leaf     {{blob}} NOT NULL,
  openings {{blob}},
  version  {{int}}  NOT NULL,
  code     {{blob}}
) {{strict}};
CREATE INDEX entries_unsealed ON entries (tenant, seq) WHERE idx IS NULL;
CREATE UNIQUE INDEX entries_sealed ON entries (tenant, idx) WHERE idx IS NOT NULL;
CREATE INDEX entries_subject ON entries (subject, tenant, version);

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
  pruned     {{int}}  NOT NULL,
  code       {{blob}}
) {{strict}};

-- Checkpoints that two keys signed, when the second took over.
CREATE TABLE handovers (
  tenant     {{text}} NOT NULL,
  size       {{int}}  NOT NULL,
  checkpoint {{blob}} NOT NULL,
  code       {{blob}},
  PRIMARY KEY (tenant, size)
) {{strict}};

-- What the store is bound to: the last row counts.
CREATE TABLE periods (
  n          {{int}}  NOT NULL PRIMARY KEY,
  id         {{text}} NOT NULL,
  public_key {{text}} NOT NULL,
  why        {{text}} NOT NULL,
  at         {{int}}  NOT NULL,
  code       {{blob}} NOT NULL
) {{strict}};

-- maker is the token that made this one, with which it ends.
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
  maker   {{text}} NOT NULL,
  code    {{blob}},
  PRIMARY KEY (tenant, id)
) {{strict}};

CREATE TABLE kept (
  bucket  {{text}} NOT NULL,
  name    {{text}} NOT NULL,
  value   {{blob}} NOT NULL,
  expires {{int}}  NOT NULL,
  code    {{blob}},
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
  created {{int}}  NOT NULL,
  code    {{blob}}
) {{strict}};
CREATE INDEX deliveries_due ON deliveries (target, run_at) WHERE state = 'waiting';
CREATE INDEX deliveries_state ON deliveries (tenant, state, id);

-- Records are documents of the edges, which look after their contents. A version guards each of them.
CREATE TABLE records (
  room    {{text}} NOT NULL,
  name    {{text}} NOT NULL,
  alias   {{text}} NOT NULL,
  version {{int}}  NOT NULL,
  due     {{int}},
  expires {{int}},
  value   {{blob}} NOT NULL,
  code    {{blob}},
  PRIMARY KEY (room, name)
) {{documents}};
CREATE UNIQUE INDEX records_alias ON records (room, alias) WHERE alias <> '';
CREATE INDEX records_due ON records (room, due, name) WHERE due IS NOT NULL;
CREATE INDEX records_expires ON records (expires) WHERE expires IS NOT NULL;

-- Ping writes here.
CREATE TABLE pulse (
  id      {{int}}  NOT NULL PRIMARY KEY,
  payload {{blob}} NOT NULL
) {{strict}};
