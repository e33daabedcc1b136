import { pathName } from "../config/written.ts";
import { validate } from "../config/validate.ts";

/** Returns the keys that `check` will refuse in a configuration that was made for this proxy, each with the reason. */
export function refusalsOf(
  configuration: unknown,
  env: Readonly<Record<string, string | undefined>>,
): (readonly [key: string, why: string])[] {
  const { problems } = validate(configuration, [], { env, directory: process.cwd() });
  return problems.map(({ path, message, hint }) => [
    pathName(path),
    hint === undefined ? message : `${message} (${hint})`,
  ]);
}
