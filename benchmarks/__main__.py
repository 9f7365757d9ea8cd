"""Every benchmark, one after the other."""

from benchmarks import fit, sampler, stages

if __name__ == "__main__":
    sampler.main()
    fit.main()
    stages.main(["--quick"])
