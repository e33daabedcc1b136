import { z } from "zod";
import type { StoreKindName } from "../../../credentials/stores/store-kinds.ts";
import { duration, filePath, whole } from "../fields.ts";

/** The keys that several kinds of user stores have in common. */

export function store<Kind extends StoreKindName, Shape extends z.ZodRawShape>(
  kind: Kind,
  settings: Shape,
) {
  return z.strictObject({ kind: z.literal(kind).describe("The kind of store"), ...settings });
}

/** The keys that limit queries to a store on another machine. */
export function asking() {
  return {
    connections: whole(1, 100)
      .default(4)
      .describe("Logins that may query the store at the same time; further ones wait"),
    timeout: timeout(),
  };
}

export function timeout() {
  return duration({ min: 10, max: 30_000 })
    .prefault("3s")
    .describe(
      "Time for the store's answer, including the wait for a connection; then the login gets 503",
    );
}

export function caFile() {
  return filePath()
    .exactOptional()
    .describe("Authorities for the server's certificate, PEM; default: Node's");
}

export function query() {
  return z
    .string()
    .min(1, "must not be empty")
    .refine((text) => text.includes("$1"), "must contain $1, which stands for the user name")
    .describe(
      "Query for one user, with $1 for the name; it returns password_hash and, optionally, groups, disabled, name",
    );
}
