-- Which states past calls went through, for rules that count them. id is a request or a run without one. A row with ends is a reservation: the call may
-- run until then. A row may be deleted after until. Column body has everything, so that readers fetch few columns (pasts.go); the others are for
-- queries. The row with an empty id and the state 'restored' marks that earlier rows may be missing.
CREATE TABLE pasts (
  tenant     {{text}} NOT NULL,
  id         {{text}} NOT NULL,
  state      {{text}} NOT NULL,
  at         {{int}}  NOT NULL,
  ends       {{int}},
  until      {{int}}  NOT NULL,
  agent      {{text}} NOT NULL,
  principal  {{text}} NOT NULL,
  session    {{text}} NOT NULL,
  kind       {{text}} NOT NULL,
  container  {{text}} NOT NULL,
  name       {{text}} NOT NULL,
  body       {{blob}} NOT NULL,
  code       {{blob}},
  PRIMARY KEY (tenant, id, state)
) {{strict}};
CREATE INDEX pasts_at ON pasts (state, tenant, at);
CREATE INDEX pasts_agent ON pasts (agent, tenant, state, at);
CREATE INDEX pasts_principal ON pasts (principal, tenant, state, at) WHERE principal <> '';
CREATE INDEX pasts_session ON pasts (session, tenant, state, at) WHERE session <> '';
CREATE INDEX pasts_name ON pasts (name, tenant, state, at);
CREATE INDEX pasts_until ON pasts (until);
