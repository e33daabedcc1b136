/** undici declares types only for its index, not for these files. */
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
