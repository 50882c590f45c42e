# PPCA of pcaMethods (Bioconductor): Rscript make.R folder. Reads complete.csv and gaps.csv of the
# folder, writes what it finds beside them. Started by make.py.
suppressMessages(library(pcaMethods))
folder <- commandArgs(trailingOnly = TRUE)[1]
for (name in c("complete", "gaps")) {
  rows <- as.matrix(read.csv(file.path(folder, paste0(name, ".csv")), header = FALSE))
  found <- pca(rows, method = "ppca", nPcs = 2, center = TRUE, seed = 1, threshold = 1e-13,
               maxIterations = 50000)
  write <- function(values, what) {
    path <- file.path(folder, paste0(name, "_", what, ".csv"))
    write.table(format(values, digits = 15), path, sep = ",", row.names = FALSE,
                col.names = FALSE, quote = FALSE)
  }
  write(loadings(found), "loadings")
  write(scores(found), "scores")
  write(completeObs(found), "filled")
}
cat(as.character(packageVersion("pcaMethods")), R.version.string, sep = "\n")
