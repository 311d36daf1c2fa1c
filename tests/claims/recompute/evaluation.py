"""Claims about what the chapter on evaluation draws together."""

from tests.claims.ledger import bibliography, recomputes


@recomputes("sources.004")
def papers_in_the_bibliography(papers):
    return sum(f"{{{key}," in bibliography() for key in set(papers.split()))
