// Reports that the recipient's browser has opened the page of a link.

const page = document.querySelector("[data-review]");
fetch(page.dataset.review + "/opened", { method: "POST", body: new URLSearchParams(location.search) });
