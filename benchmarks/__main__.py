"""Every benchmark, one after the other."""

from benchmarks import sampler, stages

if __name__ == "__main__":
    sampler.main()
    stages.main(["--quick"])
