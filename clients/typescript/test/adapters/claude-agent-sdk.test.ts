/** The cases of every adapter, with Claude Code, run by the Claude Agent SDK, and a scripted model. */

import { cases } from "./suite.js";
import { framework } from "./claude-agent-sdk.js";

cases(framework);
