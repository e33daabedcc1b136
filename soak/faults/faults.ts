import { backendKilled } from "./backend-killed.ts";
import { answersBreakOff, backendSilent, connectionsDropped } from "./backend-misbehaves.ts";
import type { Fault } from "./fault.ts";
import { trustedKeysChange } from "./trusted-keys-file.ts";
import { usersFileChanges } from "./users-file.ts";

/** All faults. A new one needs a file and a line here. */
export const FAULTS = {
  "backend killed and restarted": backendKilled,
  "backend silent": backendSilent,
  "answers break off": answersBreakOff,
  "connections dropped": connectionsDropped,
  "users file rewritten": usersFileChanges,
  "trusted keys rewritten": trustedKeysChange,
} as const satisfies Record<string, Fault>;
