import type { Status } from "../../../core/status.ts";
import { type Html, html } from "./html.ts";
import { plot, type Series, seriesOf } from "./plot.ts";
import { badge, section, table } from "./table.ts";
import { amount } from "./words.ts";

/** The sections about requests: plots, routes, upstreams. */

export function loginsSection({ minutes }: Status): Html {
  const series = seriesOf(minutes, "logins", (word) =>
    word === "success" ? "good" : word === "bad_credentials" ? "warn" : "bad",
  );
  return plotsSection({
    id: "logins",
    title: "Logins",
    nothing: "nobody logged in",
    series,
    minutes,
  });
}

export function refusalsPlots({ minutes }: Status): Html {
  const series = seriesOf(minutes, "refusals", () => "plain");
  const nothing = "nothing was refused";
  return plotsSection({ id: "reasons", title: "Refusals by reason", nothing, series, minutes });
}

interface Plots extends Pick<Status, "minutes"> {
  readonly id: string;
  readonly title: string;
  /** What happened, if there are no series. */
  readonly nothing: string;
  readonly series: readonly Series[];
}

function plotsSection({ id, title, nothing, series, minutes }: Plots): Html {
  const note = `the last ${minutes.length} minutes`;
  return section(
    id,
    title,
    note,
    series.length === 0
      ? html`<p class="soft">In ${note}, ${nothing}.</p>`
      : html`<div class="plots">${series.map((each) => plot(each, minutes))}</div>`,
  );
}

export function routesSection({ routes }: Status): Html {
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
      [
        { title: "#", number: true },
        { title: "Name" },
        { title: "Hosts" },
        { title: "Path" },
        { title: "Methods" },
        { title: "Access" },
        { title: "Upstream" },
        { title: "Requests", number: true },
        { title: "4xx", number: true },
        { title: "5xx", number: true },
      ],
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

export function upstreamsSection({ upstreams }: Status): Html {
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
    table(
      [
        { title: "Upstream" },
        { title: "Target" },
        { title: "Health" },
        { title: "In flight", number: true },
        { title: "Waiting", number: true },
      ],
      rows,
    ),
  );
}
