import { hash } from "node:crypto";
import { Html, html } from "../../lib/text/html.ts";

/** What the configuration puts on the pages. */
export interface PageWords {
  readonly title: string;
  readonly message?: string | undefined;
  /** A picture as a data URL. */
  readonly logo?: string | undefined;
}

/** What a page shows. */
export interface PageContent {
  readonly heading: string;
  /** Told to everybody, screen readers first: why the page is there. */
  readonly notice?: string | undefined;
  readonly content: Html;
}

/** All styles of the pages. They load no script, font or picture, and match the status page. */
const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --line: #c3ccd4; --edge: #7b8791; --text: #17212b; --soft: #5b6975;
  --bad: #b3261e; --bad-soft: #fbe4e2; --accent: #17527e; --on-accent: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1419; --card: #171e25; --line: #46535f; --edge: #74818d; --text: #e4eaf0; --soft: #94a3b1;
    --bad: #ff8f86; --bad-soft: #45201e; --accent: #7cc0f2; --on-accent: #0f1419;
  }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { width: 100%; max-width: 400px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 28px 24px; overflow-wrap: anywhere; }
h1 { font-size: 22px; line-height: 1.25; margin: 0 0 4px; }
p { margin: 0 0 16px; color: var(--soft); }
.notice { color: var(--bad); background: var(--bad-soft); border-radius: 6px; padding: 8px 12px; }
label { display: block; margin: 0 0 14px; font-size: 14px; }
input { display: block; width: 100%; margin-top: 4px; padding: 10px; font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 6px; }
.or { text-align: center; margin: 14px 0; }
.button { display: block; text-align: center; text-decoration: none; }
button, .button { width: 100%; padding: 11px; font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 0; border-radius: 6px; cursor: pointer; }
a:not(.button) { color: var(--accent); }
img { display: block; max-width: 100%; max-height: 64px; margin: 0 0 16px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
small { display: block; margin-top: 16px; color: var(--soft); font-size: 13px; }
`;

/** Byte for byte what the policy allows. */
const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

/**
 * Pages load nothing (a logo is part of the page), run nothing, and cannot be framed. Without `form-action`: Chromium applies it to each redirect behind a form,
 * and applications redirect to other hosts.
 */
const POLICY = [
  "default-src 'none'",
  "img-src data:",
  `style-src 'sha256-${hash("sha256", STYLE, "base64")}'`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** A navigation and a request of a program share an address. */
export const VARIES = ["Vary", "Accept, Sec-Fetch-Site, Sec-Fetch-Mode, Sec-Fetch-Dest"];

/**
 * The fields of a page, names and values alternating. `no-referrer` would take `Origin` from the form, too; a page and its
 * envelope share an address.
 */
export const PAGE_FIELDS: readonly string[] = [
  ...["Content-Type", "text/html; charset=utf-8"],
  ...["Content-Security-Policy", POLICY, "X-Frame-Options", "DENY"],
  ...["Referrer-Policy", "same-origin", ...VARIES],
];

/** Returns a whole page. @param more further elements of its head. */
export function htmlPage(title: string, style: Html, body: Html, more?: Html): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        ${more}
        <title>${title}</title>
        <link rel="icon" href="data:," />
        ${style}
      </head>
      <body>
        ${body}
      </body>
    </html> `.text;
}

/** Returns a page for people who sign in. @param requestId for those who report a problem. */
export function renderPage(words: PageWords, page: PageContent, requestId: string): string {
  const { title, message, logo } = words;
  const { heading, notice, content } = page;
  const body = html`<main>
    ${logo === undefined ? undefined : html`<img src="${logo}" alt="" />`}
    <h1>${heading}</h1>
    <p>${title}</p>
    ${notice === undefined ? undefined : html`<p class="notice" role="alert">${notice}</p>`}
    ${content} ${message === undefined ? undefined : html`<small>${message}</small>`}
    <small>Request ${requestId}</small>
  </main>`;
  return htmlPage(`${heading} · ${title}`, STYLE_ELEMENT, body);
}

/** Returns the form for a name and a password. @param action its address. @param to where the browser goes then. */
export function signInForm(action: string, to: string): Html {
  return html`<form method="post" action="${action}">
    <input type="hidden" name="to" value="${to}" />
    <label
      >User name
      <input
        name="username"
        autocomplete="username"
        autocapitalize="none"
        spellcheck="false"
        required
        autofocus
    /></label>
    <label
      >Password <input name="password" type="password" autocomplete="current-password" required
    /></label>
    <button>Sign in</button>
  </form>`;
}

/** Returns a button for each provider. @param form what stands above them. */
export function providerLinks(
  links: readonly { readonly href: string; readonly text: string }[],
  form: Html | undefined,
): Html {
  const buttons = links.map(
    ({ href, text }) => html`<p><a class="button" href="${href}">${text}</a></p>`,
  );
  const apart = form !== undefined && links.length > 0 && html`<p class="or">or</p>`;
  return html`${form}${apart}${buttons}`;
}

/** Returns a button that signs out. @param person who is signed in, if that is not said elsewhere. */
export function signOutForm(action: string, person?: string): Html {
  const who = person === undefined ? undefined : html`<p>You are signed in as ${person}.</p>`;
  return html`${who}
    <form method="post" action="${action}"><button>Sign out</button></form>`;
}

/** Returns a link, as the only thing to do on a page. */
export function link(href: string, text: string): Html {
  return html`<p><a href="${href}">${text}</a></p>`;
}
