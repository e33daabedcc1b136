import { type Dependency, type IssuerState, SOON_MS } from "../../core/status.ts";
import type { RemoteOutage } from "../../core/remote-check.ts";
import { keysOf } from "../../lib/keys-of.ts";
import { span } from "../../server/admin/status/words.ts";
import { checksIn, SIGN_IN } from "../gate/remote-checks.ts";
import type { LogSink } from "../../observe/log/log-sink.ts";
import type { ReloadStates } from "../reload/reload-states.ts";
import type { Service } from "../service.ts";

type Row = Omit<Dependency, "kind">;

/**
 * Returns everything that Sallyport depends on, and how it is. Status page, `top`, `/readyz?verbose` and `doctor` show these rows.
 * They hold no more of a failure than that there is one: the log has its cause.
 */
export async function dependenciesOf(
  service: Service,
  reloads: Pick<ReloadStates, "failure">,
): Promise<Dependency[]> {
  const { parts } = service;
  const [stores, { issuers, outages }] = await Promise.all([
    service.probing.stores(),
    parts.traffic.state(),
  ]);
  const { state: server } = parts.sharing;
  const rows: Readonly<Record<Dependency["kind"], readonly Row[]>> = {
    "user store": stores.map(({ name, problem }) =>
      problem === undefined ? good(name, "answers") : bad(name, problem),
    ),
    "state server":
      server === undefined
        ? []
        : [
            server.up
              ? good("redis", "connected")
              : bad("redis", "unavailable", server.failingSince),
          ],
    "key set": issuers.map((issuer) => keySetRow(issuer, parts.options.clock.now())),
    "remote check": checkRows(service, outages),
    "sign-in provider": parts.signIns
      .providers()
      .map(({ name, failing }) => (failing ? bad(name, "unavailable") : good(name, "no failure"))),
    "API keys": parts.keyStores.states().map(({ name, keys, failingSince }) => {
      const words = keys === undefined ? "never read" : `${keys} in force`;
      return failingSince === undefined ? good(name, words) : bad(name, words, failingSince);
    }),
    files: [filesRow(reloads.failure)],
    log: logRows(parts.observation.sink),
    certificate: certificateRows(service),
    "signing key": keyRows(service),
  };
  return keysOf(rows).flatMap((kind) => rows[kind].map((each) => ({ kind, ...each })));
}

function checkRows({ configuration }: Service, outages: readonly RemoteOutage[]): Row[] {
  const asked = checksIn(configuration).filter(({ kind }) => kind !== SIGN_IN);
  return asked.map(({ kind, name }) => {
    const outage = outages.find((each) => each.kind === kind && each.name === name);
    const label = `${name} (${kind})`;
    if (outage === undefined) return good(label, "no failure");
    const words = outage.stale ? "unavailable, earlier answers are used" : "unavailable";
    return bad(label, words, outage.since);
  });
}

function keySetRow({ issuer, usable, keys, readAt, fetches }: IssuerState, now: number): Row {
  const since = fetches?.failingSince;
  if (!usable) return bad(issuer, "no keys", since);
  if (fetches?.stale === true) return bad(issuer, "old keys", since);
  const age = readAt === undefined ? "" : `, ${span(now - readAt)} old`;
  const loaded = `${keys} ${keys === 1 ? "key" : "keys"}${age}`;
  if (since === undefined) return good(issuer, loaded);
  return warn(issuer, `${loaded}, and cannot be fetched`, since);
}

function filesRow(failure: ReloadStates["failure"]): Row {
  const name = "configuration and the files that it names";
  return failure === undefined
    ? good(name, "in force")
    : bad(name, "changed, but not in force: see the last reload", failure.at);
}

function logRows(sink: LogSink): Row[] {
  if (sink.dropped() === 0) return [];
  const [words, why] = [`${sink.dropped()} lines dropped since the start`, sink.losing()];
  return [why ? warn("standard output", `${words}, ${why}`) : good("standard output", words)];
}

function certificateRows({ certificateEnds, parts }: Service): Row[] {
  return certificateEnds.map(({ of, name, notAfter }) => {
    const words = of.replaceAll("_", " ").replace("tls certificate", "served");
    const label = words.replace("tls ", "").replace(/\bca$/, "CA");
    const end = notAfter * 1000;
    return endRow(
      name === undefined ? label : `${label} (${name})`,
      end,
      parts.options.clock.now(),
    );
  });
}

function keyRows({ configuration, parts }: Service): Row[] {
  const { keys, options } = parts;
  const { signer } = keys;
  if (signer === undefined) {
    return configuration.users.length === 0 ? [] : [bad("tokens", "no key signs")];
  }
  const now = options.clock.now();
  const end = signer.verifiesUntil;
  return [
    end === Infinity ? good("tokens", "signs") : endRow("tokens", end, now),
    ...[...keys.removed]
      .filter(([, at]) => at > now - configuration.tokens.lifetime)
      .map(([kid, at]) => warn(kid, "was removed: its tokens are refused", at)),
  ];
}

/** @param end in milliseconds since the epoch, like `now`. */
function endRow(name: string, end: number, now: number): Row {
  if (end <= now) return bad(name, "has ended", end);
  const left = end - now;
  const words = `ends in ${span(left)}`;
  return left < SOON_MS ? warn(name, words) : good(name, words);
}

function good(name: string, words: string): Row {
  return { name, state: "good", words, since: undefined };
}

function warn(name: string, words: string, since?: number): Row {
  return { name, state: "warn", words, since };
}

function bad(name: string, words: string, since?: number): Row {
  return { name, state: "bad", words, since };
}
