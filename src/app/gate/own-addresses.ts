import { identityAnswers } from "../../upstream/headers/identity-headers.ts";
import { createNetworks } from "../../lib/http/networks.ts";
import { hostMatcher } from "../../policy/route-table.ts";
import { Sessions } from "../../server/browser/sessions.ts";
import { Decisions } from "../../server/decisions/decisions.ts";
import { UNMETERED } from "../../server/listener/reading/fair-reading.ts";
import { ambiguous, createIntake } from "../../server/request/intake.ts";
import { Assertions } from "../../tokens/assertion/assertions.ts";
import {
  assertionOf,
  assertsWithOwnKeys,
  identityHeadersOf,
  intakeOptionsOf,
} from "./from-configuration.ts";
import type { GateOptions } from "./gate-options.ts";

/** What answers below `server.ownPath`: people with browsers, and other proxies. */

/** Returns what answers other proxies, if some may ask. */
export function decisionsFor({
  configuration,
  clock,
  assertionKeys,
  keys,
}: GateOptions): Decisions | undefined {
  const { decisions, server, tokens } = configuration;
  if (decisions === undefined || !decisions.http) return undefined;
  const reading = intakeOptionsOf(configuration);
  const assertion = assertionOf(configuration);
  const signing = assertsWithOwnKeys(tokens) ? assertionKeys : keys;
  const assertions = assertion && new Assertions(assertion, signing, clock);
  const trusted = [...decisions.from, ...server.trustedProxies];
  return new Decisions({
    ownPath: server.ownPath,
    from: createNetworks(decisions.from),
    intake: createIntake({
      ...reading,
      trustedProxies: createNetworks(trusted),
      // The address of the proxy that asks would pass for that of everybody.
      unknown() {
        throw ambiguous("header");
      },
    }),
    ...identityAnswers(identityHeadersOf(configuration), assertions),
  });
}

/** Returns what people with browsers get, if they sign in here. */
export function sessionsFor(options: GateOptions): Sessions | undefined {
  const { configuration, logins, signIns, observer, clock, logOut, logo } = options;
  const { reading = UNMETERED } = options;
  const { browser, server, tokens, users, routes } = configuration;
  if (browser === undefined) return undefined;
  const { cookie, page = { title: "Sallyport" }, lifetime = tokens.lifetime } = browser;
  const hosts = routes.flatMap((route) => route.hosts ?? []);
  return new Sessions({
    logins,
    signIns,
    observer,
    clock,
    reading,
    cookie,
    lifetimeMs: lifetime,
    ownPath: server.ownPath,
    page: page === "off" ? undefined : { ...page, logo },
    hasUsers: users.length > 0,
    providers: browser.providers.map(({ name, label = name, automatic, logout: ends }) => ({
      name,
      label,
      automatic,
      signsOut: ends === "provider",
    })),
    isOwnHost: hosts.length === 0 ? () => true : hostMatcher(hosts),
    issuer: tokens.issuer,
    revoke: logOut,
  });
}
