// Styles are bundled, not read by the compiler.
declare module "*.css";
