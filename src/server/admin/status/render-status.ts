import type { Status } from "../../../core/status.ts";
import { configurationSection, reloadSection } from "./configuration-sections.ts";
import { type Html, html } from "./html.ts";
import { loginsSection, refusalsPlots } from "./plots.ts";
import { refusalsSection } from "./refusals-section.ts";
import { issuersSection, keysSection } from "./security-sections.ts";
import { STYLE_ELEMENT } from "./style.ts";
import { badge } from "./table.ts";
import { routesSection, upstreamsSection } from "./traffic-view.ts";
import { amount, bytes, health, moment, span } from "./words.ts";

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
