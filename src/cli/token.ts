import { type Command, UsageError } from "./command.ts";
import { CONFIGURATION_HELP } from "./arguments.ts";
import { NAMED_REVOCATIONS } from "../core/revocation.ts";
import { ASKED_HELP } from "./token/asked-revocation.ts";
import { inspectOne } from "./token/inspect.ts";
import { revoke } from "./token/revoke.ts";
import { mint } from "./token/mint.ts";

const FLAGS = NAMED_REVOCATIONS.map(
  ({ word, help: [value, line] }) => `      ${`--${word} ${value}`.padEnd(22)}revoke: ${line}`,
).join("\n");
const NAMES = NAMED_REVOCATIONS.map(({ word, help: [value] }) => `--${word} ${value}`).join(" | ");

export const token: Command = {
  help: `Usage: sallyport token inspect [TOKEN] [options]
       sallyport token mint --subject NAME [options]
       sallyport token revoke [--token TOKEN | ${NAMES} | --before TIME] [options]

inspect prints the header, the claims and the dates of a token, and whether this configuration accepts it,
and if not, why. The token comes from an argument, --token, --token-file or standard input. The signature is
never printed. Exit code 0 if the token is accepted, 1 if not. Without a configuration, inspect only decodes
the token and verifies nothing; the exit code is 1.
${ASKED_HELP}

mint signs a token with a key of the configuration (tokens.keys), without a running proxy, and prints
only the token. You need read access to the keys.

revoke makes a running proxy refuse tokens before they expire: one token, from --token, --token-file or
standard input; one token by its jti; the tokens of a subject; or all tokens issued before a time. It
connects to the address of admin.listen; without a configuration file, to 127.0.0.1:9464. Exit code 1 if
nothing was revoked.

      --token TOKEN         inspect, revoke: the token
      --token-file FILE     inspect, revoke: reads the token from a file, so that no process list shows it
      --format text|json    inspect: default: text
      --subject NAME        mint: the subject
      --groups A,B          mint: the groups, separated by commas
      --lifetime DURATION   mint: the lifetime, such as 15m (default: tokens.lifetime)
${FLAGS}
      --issuer ISSUER       revoke: with --subject, only the tokens of this issuer
      --before TIME         revoke: tokens issued before this time, such as 2026-11-22T10:00:00Z
      --url URL             revoke: connects there and reads no configuration
${CONFIGURATION_HELP}
  -h, --help                this text`,
  async run(args, terminal) {
    const [action = "", ...rest] = args;
    switch (action) {
      case "inspect":
        return inspectOne(rest, terminal);
      case "mint":
        return mint(rest, terminal);
      case "revoke":
        return revoke(rest, terminal);
      default:
        throw new UsageError(`use inspect, mint or revoke, not ${JSON.stringify(action)}`);
    }
  },
};
