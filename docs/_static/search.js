// Titles and options that have the words that are searched for come first; all other figures are those of Sphinx.
const searched = new URLSearchParams(location.search).get("q")?.toLowerCase().match(/[\w.-]+/g) ?? [""];
const shareFound = (title) => searched.filter((word) => title.toLowerCase().includes(word)).length / searched.length;
var Scorer = {
  score: ([, title, , , score, , kind]) => score + 20 * shareFound(title) + (kind === "object" ? 8 : 0),
  title: 15, partialTitle: 7, term: 5, partialTerm: 2, objNameMatch: 11, objPartialMatch: 6, objPrio: [15, 5, -5],
};
