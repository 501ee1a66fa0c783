// Both pages are one bundle, since most of it is the chart library: the document says which one it is.
import { follow } from "./dash.js";
import { begin } from "./plan.js";

({ plan: begin, dash: follow })[document.body.dataset.page]();
