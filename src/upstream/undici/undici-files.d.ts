/** undici describes the parts on its index alone. */
declare module "undici/lib/core/connect.js" {
  export { buildConnector as default } from "undici";
}
declare module "undici/lib/dispatcher/client.js" {
  export { Client as default } from "undici";
}
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
declare module "undici/lib/core/symbols.js" {
  const symbols: { readonly kParser?: symbol };
  export default symbols;
}
