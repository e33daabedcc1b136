/** The metadata of all kinds of objects. */
import { z } from "zod";

export const names = z.record(z.string(), z.string());

export const metadata = z.strictObject({
  name: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  namespace: z.string().optional(),
  labels: names.optional(),
  annotations: names.optional(),
});

export const selector = z.strictObject({ matchLabels: names });
