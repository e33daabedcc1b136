import type { Status } from "../../../core/status.ts";
import { type Html, html } from "./html.ts";
import { badge, section, table } from "./table.ts";
import { amount } from "./words.ts";

/** The sections about requests: routes and upstreams. */

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
    table(["Upstream", "Target", "Health", ">In flight", ">Waiting"], rows),
  );
}
