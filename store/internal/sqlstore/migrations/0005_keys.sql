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
{{share_request_keys}};
CREATE INDEX request_keys_deadline ON request_keys (name, tenant, deadline, id) WHERE state = 'open';
-- The version of the request whose keys request_keys has. Versions of assent that know nothing of keys leave it behind.
ALTER TABLE requests ADD COLUMN keyed {{int}} NOT NULL DEFAULT 0;
CREATE INDEX requests_unkeyed ON requests (tenant) WHERE keyed <> version;
