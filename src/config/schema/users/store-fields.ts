import { z } from "zod";
import type { StoreKindName } from "../../../credentials/stores/store-kinds.ts";
import { duration, filePath } from "../fields.ts";

/** The keys that several kinds of user stores share. */

export function store<Kind extends StoreKindName, Shape extends z.ZodRawShape>(
  kind: Kind,
  settings: Shape,
) {
  return z.strictObject({ kind: z.literal(kind).describe("The kind of store"), ...settings });
}

/** What bounds the questions to a store on another machine. */
export function asking() {
  return {
    connections: z
      .int()
      .min(1)
      .max(100)
      .default(4)
      .describe("Logins that may ask at the same time; further ones wait"),
    timeout: timeout(),
  };
}

export function timeout() {
  return duration({ min: 10, max: 30_000 })
    .prefault("3s")
    .describe("Longest time for an answer, the wait for a connection included; then 503");
}

export function caFile() {
  return filePath()
    .exactOptional()
    .describe("PEM file of the authorities that its certificate may come from; default: Node's");
}

export function query() {
  return z
    .string()
    .min(1, "must not be empty")
    .refine((text) => text.includes("$1"), "must hold $1, which stands for the user name")
    .describe(
      "Query for one user, with $1 for the name; columns password_hash, and if need be groups, disabled, name",
    );
}
