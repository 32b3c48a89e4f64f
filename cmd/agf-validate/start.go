package main

// The templates that init fills in. Words in capitals are replaced.

const startAgent = `# The agent: what it may reach, and what it must ask for first.
# Fields: agf-validate schema agent. Why a finding matters: agf-validate explain RULE.
schema_version: "1.0.0"
metadata:
  id: ID # requests, records and people.yaml (owns) name the agent so
  name: ID
  version: "1.0.0" # an approval holds for one version
  description: Say in a sentence what the agent is for.
interface:
  input: {type: object}
  output: {type: object}
execution_policy:
  id: agf.react
  config:
    instructions: Say here what the agent shall do.
    model: any
constraints:
  # Policies that must be there: without them every call is denied. They only add to what this file asks.
  governance_policies:
    - policy_ref: ID.approvals
action_space:
`

const startTool = `    - alias: send_mail
      # true asks every time. A condition asks when it matches, or when nobody can tell:
      # approval: {condition: {args_match: {to: {pattern: "@(?i:example)\\.com$"}}}}
      approval: true
`

const startServer = `    - alias: ALIAS
      # Every tool of the server asks, unless its entry says otherwise.
      approval: true
      # Nothing else of the server may be called. Leave out what the agent does not need.
`

const startPolicy = `# The policy: who answers, how many, and what happens when nobody does. It can only make agents ask more.
# Fields: agf-validate schema policy.
schema_version: "1.0.0"
policy_ref: ID.approvals # agents name it under governance_policies
description: Whatever does not only read needs one of the approvers.
rules:
  - id: changes
    match:
      kinds: [KINDS]
      # A tool that says nothing counts as one that changes something.
      annotations: {readOnlyHint: false}
    approval:
      message_template: "{{agent_id}} wants to run {{tool_name}}: {{tool_args}}"
    require:
      stages:
        - {group: approvers, people: 1} # a group of people.yaml; who asks never counts
      within: 30m
      on_timeout: deny
      grants: session # approvers may let further calls of the session run; forbid asks every time
`

const startDestructive = `
  # The server says that these destroy something.
  - id: destructive
    match:
      kinds: [KINDS]
      targets:
TARGETS
    approval: true
    require:
      stages:
        - {group: approvers, people: 2} # two different people
      within: 30m
      on_timeout: deny
      grants: forbid
`

const startPeople = `# Who may answer, and in which groups they are. Put your people here.
# Fields: agf-validate schema people.
schema_version: "1.0.0"
people:
  - id: alice@example.com # the name in records: keep it for good
    name: Alice Doe
    groups: [approvers]
  - id: bob@example.com
    name: Bob Roe
    groups: [approvers]
groups:
  approvers: {description: People who answer for this agent.}
`

const startWorkflow = `# Checks agents, policies and people of every change. GitHub reads this folder at the top of a repository only.
name: approvals
on:
  push: {branches: [main]}
  pull_request:
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-go@v5
        with: {go-version: stable}
      - run: go install github.com/assent-dev/assent/cmd/agf-validate@vVERSION
      # Findings stand beside the lines of the change.
      - run: agf-validate --format github --fail-on warning FLAGS .
      # What the tests expect still holds.
      - run: agf-validate test .
`

const startTest = `# The tests: what calls of the agent come to, and whose answers count. Run them by: agf-validate test .
# Fields: agf-validate schema test. Tests of every edge of your conditions, once you have some:
# agf-validate create-tests agent.agf.yaml --policies policies --output edges.test.yaml
schema_version: "1.0.0"
agent: agent.agf.yaml
policies: [policies]
people: people.yaml
calls:
`

const startDenied = `  - name: a tool that nobody listed is denied
    call: {KIND, tool: NOBODYS, args: {}} # as assent decide takes it
    expect:
      outcome: deny
      reasons: [{code: CODE}] # others may be there too; all_reasons lists every one
`

const startAsked = `  - name: TITLE
    # A condition reads args: give those that your tool takes.
    call: {KIND, tool: TOOL, args: {}}
    expect:
      outcome: ask
      require:
        stages: [{group: approvers, people: COUNT}]
        on_timeout: deny
`

const startVotes = `people_cases:
  - name: the answer of an approver counts
    call: {KIND, tool: TOOL, args: {}}
    # People of people.yaml: put yours here as well.
    votes:
VOTES
    expect: {outcome: approved}
  - name: one no is enough
    call: {KIND, tool: TOOL, args: {}}
    votes:
      - {person: bob@example.com, vote: deny}
    expect: {outcome: denied}
`
