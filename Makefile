# The short way in. The build itself is CMake's: see README.md.

PREFIX ?= /usr/local

# A word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'

help:
	@echo 'make demo             a real MRI head: compressed, read back, drawn, compared'
	@echo 'make demo INPUT=FILE  the same with your own .npy'
	@echo 'make test             every test, optimised and again under ASan and UBSan'
	@echo 'make python           the Python package: a wheel, installed into build/python-venv'
	@echo 'make wheels           what would be published: sdist and wheels, audited, in build/dist'
	@echo 'make peers            suites of dask, h5py, zarr, python-blosc2 over our arrays'
	@echo 'make soak             the long tests: crashes, damage, threads, fuzzing (hours)'
	@echo 'make lint             clang-tidy and cppcheck'
	@echo 'make bench            build and run the benchmarks against C-Blosc2'
	@echo 'make bench RUNS=5     the same five times; medians count'
	@echo 'make bench-rivals     against python-blosc2, HDF5, Zarr, TensorStore, TileDB'
	@echo 'make bench-python     the Python package against h5py, zarr, tensorstore, python-blosc2'
	@echo 'make install          build and install below PREFIX' $(call quoted,($(PREFIX)))
	@echo 'make uninstall        delete what the last make install wrote'
	@echo 'make docs             the manual and the references as a site, in build/docs/html'
	@echo 'make format           clang-format over all sources'
	@echo 'make clean            remove all builds (build/deps and the venvs stay)'

demo:
	@scripts/demo $(if $(INPUT),$(call quoted,$(INPUT)))

test:
	@scripts/test

python:
	@scripts/python

wheels:
	@scripts/wheels

peers:
	@scripts/peers

soak:
	@scripts/soak $(FUZZ_SECONDS)

lint:
	@scripts/lint

bench:
	@scripts/bench $(if $(RUNS),--runs '$(RUNS)')

bench-rivals:
	@scripts/bench-rivals

bench-python:
	@scripts/bench-python $(if $(RUNS),--runs '$(RUNS)')

install:
	@scripts/bootstrap
	@cmake -S . -B build/install -G Ninja -DCMAKE_BUILD_TYPE=Release -DCATERVA_TESTS=OFF \
	    -DCATERVA_BENCH=OFF >/dev/null
	@cmake --build build/install
	@cmake --install build/install --prefix $(call quoted,$(PREFIX))

uninstall:
	@cmake --build build/install --target uninstall

docs:
	@scripts/docs

format:
	clang-format -i $$(find include src cli tests bench fuzz examples -name '*.[ch]' 2>/dev/null)

clean:
	rm -rf build/release build/install build/dev build/asan build/tsan build/coverage build/demo build/bench build/docs build/python build/python-address build/python-thread build/wheels build/dist
	rm -f build/CTestTestfile.cmake build/test.log

.PHONY: help demo test python wheels peers soak lint bench bench-rivals bench-python install \
        uninstall docs format clean
