import type { Configuration } from "../../config/schema.ts";
import type { Change } from "../../core/change.ts";
import type { Gate } from "../../core/gate.ts";
import { TrustedKeys } from "../../tokens/trusted-keys.ts";
import { type GateOptions, openGate, type OpenGate } from "../gate.ts";
import { NO_LOGINS, SILENT_LOG, SILENT_OBSERVER } from "./silent.ts";

/** A gate that nothing goes through: it only answers questions, and changes with those in force. */
export interface Questions {
  gate(): Gate;
  /** @throws ConfigError when a file that the configuration names is broken. */
  prepare(configuration: Configuration): Change;
  close(): Promise<void>;
}

/** For where those in force are in other threads. @throws ConfigError when a file that the configuration names is broken. */
export function openQuestions(
  options: Pick<GateOptions, "configuration" | "version" | "keys" | "clock">,
): Questions {
  const { version, keys, clock } = options;
  // As in each thread: a change of the configuration loses no keys.
  const trustedKeys = new TrustedKeys({ clock, log: SILENT_LOG });
  const open = (configuration: Configuration, before?: OpenGate): OpenGate =>
    openGate(
      {
        ...{ configuration: withSmallCache(configuration), version, keys, trustedKeys, clock },
        ...{ logins: NO_LOGINS, log: SILENT_LOG, observer: SILENT_OBSERVER },
      },
      before,
    );
  let current = open(options.configuration);
  return {
    gate: () => current.asked,
    prepare(configuration) {
      const before = current;
      const next = open(configuration, before);
      return {
        async commit() {
          current = next;
          closeUnshared(before, next);
          trustedKeys.refresh();
        },
        drop: () => closeUnshared(next, before),
      };
    },
    close: () => current.close(),
  };
}

/** Few questions are asked twice, and room is taken for all tokens at once. */
function withSmallCache({ tokens, ...rest }: Configuration): Configuration {
  return { ...rest, tokens: { ...tokens, cache: { entries: 1 } } };
}

function closeUnshared({ parts }: OpenGate, kept: OpenGate): void {
  for (const part of parts) if (!kept.parts.has(part)) void part.close();
}
