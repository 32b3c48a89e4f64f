-- Records are documents of the edges, which look after their contents. A version guards each of them.
CREATE TABLE records (
  room    {{text}} NOT NULL,
  name    {{text}} NOT NULL,
  alias   {{text}} NOT NULL,
  version {{int}}  NOT NULL,
  due     {{int}},
  expires {{int}},
  value   {{blob}} NOT NULL,
  PRIMARY KEY (room, name)
) {{documents}};
CREATE UNIQUE INDEX records_alias ON records (room, alias) WHERE alias <> '';
CREATE INDEX records_due ON records (room, due, name) WHERE due IS NOT NULL;
CREATE INDEX records_expires ON records (expires) WHERE expires IS NOT NULL;
