import type {
  RefusalExplanation,
  Status,
  StatusCertificate,
  StatusIssuer,
  StatusKey,
  StatusRefusal,
  StatusReload,
} from "../../../core/status.ts";
import { badge, type Html, html, section, table } from "./table.ts";
import { loginsSection, refusalsPlots } from "./plots.ts";
import { STYLE_ELEMENT } from "./style.ts";
import { amount, bytes, clockTime, health, moment, relative, requestLine, span } from "./words.ts";
import type { ExplainedRoute } from "../../../core/explanation.ts";

/** The sections about keys, certificates and issuers. */

const DAY_MS = 86_400_000;
/** An expiry within this time is shown as a warning. */
const SOON_MS = 14 * DAY_MS;

function keysSection({ keys, certificate, now }: Status): Html {
  const rows = [
    ...(certificate === undefined ? [] : [certificateRow(certificate, now)]),
    ...keys.map((key) => keyRow(key, now)),
  ];
  return section(
    "keys",
    "Certificate and keys",
    "what is served, and what signs tokens and assertions",
    table(["What", "Name", "State", "Made", "Ends"], rows),
  );
}

function certificateRow({ subject, issuer, names, notAfter }: StatusCertificate, now: number) {
  const by = issuer === subject ? "signed by itself" : `from ${issuer}`;
  return [
    "Certificate",
    html`${subject} <span class="soft">${by}${names === "" ? "" : `; for ${names}`}</span>`,
    notAfter <= now ? badge("bad", "ended") : badge("good", "served"),
    "",
    endOf(notAfter, now),
  ];
}

const STATES = {
  signing: { tone: "good", text: "signs" },
  published: { tone: "plain", text: "will sign" },
  verifying: { tone: "plain", text: "verifies" },
  expired: { tone: "warn", text: "expired" },
} as const;

function keyRow(key: StatusKey, now: number) {
  const { kid, signs, algorithm, state, file, madeAt, verifiesUntil } = key;
  const { tone, text } = STATES[state];
  return [
    signs === "tokens" ? `${algorithm} key` : `${algorithm} key of ${signs}`,
    html`<code>${kid}</code>
      <span class="soft">${file ?? "made at start, lost with the process"}</span>`,
    badge(tone, text),
    html`<span class="when" title="${moment(madeAt)}">${relative(madeAt, now)}</span>`,
    verifiesUntil === undefined ? html`<span class="soft">never</span>` : endOf(verifiesUntil, now),
  ];
}

function endOf(at: number, now: number): Html {
  const tone = at <= now ? "bad-text" : at - now < SOON_MS ? "warn-text" : "";
  return html`<span class="when ${tone}" title="${moment(at)}">${relative(at, now)}</span>`;
}

function issuersSection({ issuers, now }: Status): Html | undefined {
  if (issuers.length === 0) return undefined;
  const rows = issuers.map(({ issuer, usable, keys, readAt, stale }: StatusIssuer) => [
    issuer,
    !usable ? badge("bad", "no keys") : stale ? badge("warn", "old keys") : badge("good", "usable"),
    keys,
    readAt === undefined
      ? html`<span class="bad-text">never read</span>`
      : html`<span title="${moment(readAt)}">${span(now - readAt)}</span>`,
  ]);
  return section(
    "issuers",
    "Trusted issuers",
    "whose tokens are accepted",
    table(["Issuer", "State", ">Keys", ">Age of the key set"], rows),
  );
}

/** Renders the status as one self-contained page. */
export function renderStatus(status: Status): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${status.host}: Sallyport</title>
        <link rel="icon" href="data:," />
        ${STYLE_ELEMENT}
      </head>
      <body>
        ${heading(status)}
        <main>
          ${tiles(status)} ${refusalsPlots(status)} ${loginsSection(status)}
          ${routesSection(status)} ${upstreamsSection(status)} ${keysSection(status)}
          ${issuersSection(status)} ${refusalsSection(status)} ${reloadSection(status)}
          ${configurationSection(status)}
        </main>
        <footer>
          Everything on this page was true at ${moment(status.now)}. Reload it for the present. The
          same as JSON: <code>/-/status</code>; in a terminal: <code>sallyport top</code>.
        </footer>
      </body>
    </html> `;
  return page.text;
}

function heading(status: Status): Html {
  const { state, ready, host, version } = status;
  const tone = state !== "serving" ? "warn" : ready ? "good" : "bad";
  const links = [
    ["reasons", "Refusals"],
    ["logins", "Logins"],
    ["routes", "Routes"],
    ["upstreams", "Upstreams"],
    ["keys", "Keys"],
    ...(status.issuers.length === 0 ? [] : [["issuers", "Issuers"]]),
    ["refusals", "Last refusals"],
    ...(status.reload === undefined ? [] : [["reload", "Last reload"]]),
    ["configuration", "Configuration"],
  ];
  return html`<header>
    <div>
      <h1>Sallyport</h1>
      ${badge(tone, health(status))}
      <p>${host} · version ${version}</p>
      <nav aria-label="Sections">
        ${links.map(([id, name]) => html`<a href="#${id}">${name}</a> `)}
      </nav>
    </div>
  </header>`;
}

function tiles({ now, startedAt, traffic, workers, memory, node, pid }: Status): Html {
  const { requests, inFlight, webSockets, verifiedTokens } = traffic;
  const { count, alive, answered } = workers;
  const missing = answered < alive ? html` <span>${alive - answered} did not answer</span>` : "";
  const tile = (name: string, value: string, more: Html | string = ""): Html =>
    html`<li><span>${name}</span><b>${value}</b>${more}</li>`;
  return html`<ul class="tiles">
    ${tile("Up for", span(now - startedAt), html`<span>since ${moment(startedAt)}</span>`)}
    ${tile("Requests", amount(requests), html`<span>since the start</span>`)}
    ${tile("In flight", amount(inFlight), html`<span>${amount(webSockets)} WebSockets</span>`)}
    ${tile("Verified tokens", amount(verifiedTokens), html`<span>remembered</span>`)}
    ${tile("Workers", `${alive} of ${count}`, missing === "" ? html`<span>process ${pid}</span>` : missing)}
    ${tile("Memory", bytes(memory.residentBytes), html`<span>${bytes(memory.bufferedBytes)} buffered · Node ${node}</span>`)}
  </ul>`;
}

/** The sections about the configuration and its last reload. */

function reloadSection({ reload, now, configuration }: Status): Html | undefined {
  const { needRestart } = configuration;
  if (reload === undefined) return undefined;
  return section(
    "reload",
    "Last reload",
    `${relative(reload.at, now)}, ${moment(reload.at)}`,
    reload.successful ? successful(reload) : failed(reload),
    needRestart.length === 0
      ? html``
      : html`<p>
          ${badge("warn", "restart needed")} Changed, and in force after a restart:
          <code>${needRestart.join(", ")}</code>
        </p>`,
  );
}

function successful({ changes, files }: StatusReload): Html {
  const rows = changes.map(({ key, before, after }) => [
    html`<code>${key}</code>`,
    html`<code class="bad-text">${written(before)}</code>`,
    html`<code>${written(after)}</code>`,
  ]);
  return html`<p>
      ${badge("good", "in force")}
      ${files.length === 0 ? "" : html`Changed files: <code>${files.join(", ")}</code>`}
    </p>
    ${rows.length === 0 ? html`<p class="soft">No value changed.</p>` : table(["Key", "Before", "After"], rows)}`;
}

function failed({ problems }: StatusReload): Html {
  return html`<p>${badge("bad", "not in force")} The configuration before stays in force.</p>
    ${problems.map((problem) => html`<pre>${problem}</pre>`)}`;
}

function configurationSection({ configuration }: Status): Html {
  const { hash, values } = configuration;
  const set = values.filter(({ origin }) => origin !== "default");
  const defaults = values.length - set.length;
  return section(
    "configuration",
    "Configuration in force",
    hash,
    valuesTable(set),
    html`<details class="values">
      <summary>${defaults} values are defaults</summary>
      ${valuesTable(values.filter(({ origin }) => origin === "default"))}
    </details>`,
  );
}

function valuesTable(values: Status["configuration"]["values"]): Html {
  return table(
    ["Key", "Value", "Origin"],
    values.map(({ key, value, origin }) => [
      html`<code>${key}</code>`,
      html`<code>${written(value)}</code>`,
      html`<span class="soft">${origin}</span>`,
    ]),
  );
}

/** Returns a value as it would be written in a file; a dash without one. */
function written(value: unknown): string {
  if (value === undefined) return "–";
  if (Array.isArray(value)) return value.map(written).join(", ") || "[]";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The last refusals, each of which opens its explanation. */
function refusalsSection({ refusals }: Status): Html {
  return section(
    "refusals",
    "Last refusals",
    refusals.length === 0
      ? "none yet"
      : `${refusals.length}, the newest first; open one to see why`,
    html`<div>${refusals.map(refusalDetails)}</div>`,
  );
}

type Row = readonly [term: string, description: Html | string];

function refusalDetails(refusal: StatusRefusal): Html {
  const { at, status, reason, client, route, subject, requestId, id, explanation } = refusal;
  const target = requestLine(refusal);
  const tone = status >= 500 ? "bad-text" : "warn-text";
  const rows: readonly Row[] = [
    ["Time", moment(at)],
    ["Request", html`<code>${target}</code>`],
    ["Ids", html`<code>${requestId}</code> <span class="soft">and ${id} in the answer</span>`],
    ["Route", route],
    ...(subject === undefined ? [] : [["Subject", subject] as const]),
    ...(explanation === undefined ? [] : explained(explanation)),
  ];
  return html`<details class="refusal">
    <summary>
      <span class="mono">${clockTime(at)}</span><b class="${tone}">${status}</b
      ><span>${reason}</span><code>${target}</code><span class="soft mono">${client}</span>
    </summary>
    <div>
      <dl>
        ${rows.map(
          ([term, description]) =>
            html`<dt>${term}</dt>
              <dd>${description}</dd> `,
        )}
      </dl>
      ${explanation === undefined ? unreadable() : html`<pre>${explanation.command}</pre>`}
    </div>
  </details> `;
}

function unreadable(): Html {
  return html`<p class="soft">The request could not be read, so there is nothing to explain.</p>`;
}

function explained({ verdict, routes, access, notes }: RefusalExplanation): Row[] {
  const { outcome, status, reason, detail } = verdict;
  const why = detail === undefined ? "" : ` (${detail})`;
  const now = outcome === "refused" ? `refused with ${status}: ${reason}${why}` : outcome;
  return [
    ["Without a token, now", html`${now}; route <b>${verdict.route}</b>`],
    ...(access === undefined ? [] : [["Who may pass", access] as const]),
    ["Routes tried", routes.length === 0 ? "none" : html`${routes.map(routeLine)}`],
    ...(notes.length === 0 ? [] : [["Notes", notes.join("; ")] as const]),
  ];
}

function routeLine({ name, hosts, path, methods, result, misfits }: ExplainedRoute): Html {
  const why = misfits.length === 0 ? result : `another ${misfits.join(", another ")}`;
  const where = [hosts?.join(","), path, methods?.join(",")].filter((part) => part !== undefined);
  return html`<div>
    ${result === "taken" ? html`<b>${name}</b>` : name} <code>${where.join(" ")}</code>
    <span class="soft">${why}</span>
  </div>`;
}

/** The sections about requests: routes and upstreams. */

function routesSection({ routes }: Status): Html {
  const rows = routes.map((route, index) => [
    index + 1,
    html`<b>${route.name}</b>`,
    route.hosts?.join(", ") ?? html`<span class="soft">any</span>`,
    html`<code>${route.path}</code>`,
    route.methods?.join(", ") ?? html`<span class="soft">any</span>`,
    route.access === "public" ? badge("warn", "public") : route.access,
    route.upstream,
    amount(route.requests),
    errors(route.clientErrors, "warn-text"),
    errors(route.serverErrors, "bad-text"),
  ]);
  return section(
    "routes",
    "Routes",
    "in the order in which they are tried; counts since the start",
    table(
      [">#", "Name", "Hosts", "Path", "Methods", "Access", "Upstream", ">Requests", ">4xx", ">5xx"],
      rows,
    ),
  );
}

function errors(count: number, tone: string): Html {
  return html`<span class="${count === 0 ? "soft" : tone}">${amount(count)}</span>`;
}

function healthBadge(reachable: boolean, state: string): Html {
  if (!reachable) return badge("bad", state);
  return state === "ok"
    ? badge("good", "accepts connections")
    : badge("warn", `left out: ${state}`);
}

function upstreamsSection({ upstreams }: Status): Html {
  const rows = upstreams.flatMap(({ name, inFlight, waiting, targets }) =>
    targets.map(({ address, reachable, state }, index) => [
      index === 0 ? html`<b>${name}</b>` : "",
      html`<code>${address}</code>`,
      healthBadge(reachable, state),
      index === 0 ? amount(inFlight) : "",
      index === 0 ? amount(waiting) : "",
    ]),
  );
  return section(
    "upstreams",
    "Upstreams",
    "each target was asked for a connection just now",
    table(["Upstream", "Target", "Health", ">In flight", ">Waiting"], rows),
  );
}
