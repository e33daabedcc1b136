import { ADMIN } from "./attacks/admin.ts";
import type { Attack } from "./attacks/attack.ts";
import { PIPELINED } from "./attacks/pipelined.ts";
import { SIGNED_IN } from "./attacks/signed-in.ts";
import { STRANGERS } from "./attacks/strangers.ts";
import { UNREAD } from "./attacks/unread.ts";

/** All attacks, in the order in which they are run. */
export const ATTACKS: readonly Attack[] = [
  ...PIPELINED,
  ...UNREAD,
  ...ADMIN,
  ...SIGNED_IN,
  ...STRANGERS,
];
